// FanoutStore
