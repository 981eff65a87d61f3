// FanoutWorker
