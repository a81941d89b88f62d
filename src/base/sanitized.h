/* sanitized - is this build watched by a sanitizer?
 *
 * AddressSanitizer and ThreadSanitizer map terabytes of shadow, need more stack, make system calls
 * of their own and look at their process: a few limits and locks are left out where they are. All
 * three are 0 in a build without them, and where this is not included. */
#pragma once

#if defined(__has_feature)
#define SANITIZED_HAS(feature_) __has_feature(feature_)
#else
#define SANITIZED_HAS(feature_) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZED_HAS(address_sanitizer)
#define SANITIZED_ADDRESS 1
#else
#define SANITIZED_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || SANITIZED_HAS(thread_sanitizer)
#define SANITIZED_THREAD 1
#else
#define SANITIZED_THREAD 0
#endif

#define SANITIZED (SANITIZED_ADDRESS || SANITIZED_THREAD)
