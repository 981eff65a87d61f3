#pragma once
// The one-shot and incremental SHA-256 of libcrypto. The incremental calls are marked deprecated in OpenSSL 3 in favour of
// contexts on the heap; keys are hashed a few times for every event, so the context stays on the stack.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
