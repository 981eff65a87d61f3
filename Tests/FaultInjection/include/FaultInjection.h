// Nothing is called from outside: tests put this library before those of the real program by LD_PRELOAD, and steer it by variables.
