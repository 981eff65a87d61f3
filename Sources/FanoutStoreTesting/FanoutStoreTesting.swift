// FanoutStoreTesting
