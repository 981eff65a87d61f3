// FanoutProducer
