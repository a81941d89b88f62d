/* cleanup - scope cleanup, so that each failure is one `return`.
 *
 * A variable marked _cleanup_ is released when its scope ends; take_ptr and
 * take_fd hand its value out and disarm it. Initialise where you declare. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn_) __attribute__((cleanup(fn_)))
#define _printf_(fmt_, first_) __attribute__((format(printf, fmt_, first_)))
#define DEFINE_FREEP(type_, free_)        \
    static inline void free_##p(type_ *p) \
    {                                     \
        free_(*p);                        \
    }
#define take_ptr(p_)                              \
    __extension__({                               \
        __typeof__(p_) *at_ = &(p_), val_ = *at_; \
        *at_ = NULL;                              \
        val_;                                     \
    })
#define take_fd(fd_)                  \
    __extension__({                   \
        int *at_ = &(fd_), v_ = *at_; \
        *at_ = -1;                    \
        v_;                           \
    })

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_fclose(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

#define _cleanup_fd_ _cleanup_(cleanup_close)
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_file_ _cleanup_(cleanup_fclose)

#define ARRAY_LEN(a_) (sizeof(a_) / sizeof((a_)[0]))
#define container_of(ptr_, type_, member_) \
    ((type_ *)(void *)((char *)(ptr_)-offsetof(type_, member_)))
