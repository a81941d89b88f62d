#include "kernel/seccomp_ioctl.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <linux/nsfs.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture's system calls are these?"
#endif

/* Refused with EPERM, since the kernel has them: faking input to a shared terminal is the
 * classic way out; the console is not the sandbox's; a line discipline makes the kernel load a
 * module; a socket's network namespace must not be entered. */
static const uint32_t never[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, SIOCGSKNS };

/* The second byte of a request says which subsystem it belongs to. The upper half of each type
 * is for devices: tunnels, bridges, a driver's own. */
static const uint32_t types[] = {
    'T',  /* terminals; also FIONREAD, FIONBIO, FIOCLEX of every descriptor */
    0x89, /* sockets and interfaces; changing one needs a capability */
    '!',  /* a program that judges its children's system calls (seccomp's listener) */
};
#define TYPE_MASK 0xff80u

static const uint32_t single[] = {
    FICLONE,         FICLONERANGE,    FIDEDUPERANGE,     FIGETBSZ,
    FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_FSGETXATTR, NS_GET_USERNS,
    NS_GET_PARENT,   NS_GET_NSTYPE,   NS_GET_OWNER_UID,  RNDGETENTCNT,
};

struct rules {
    struct sock_filter *p;
    size_t n;
};

static void add(struct rules *r, struct sock_filter f)
{
    assert(r->n < SECCOMP_IOCTL_MAX);
    r->p[r->n++] = f;
}

static void end(struct rules *r, uint32_t action)
{
    add(r, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void load(struct rules *r, size_t offset)
{
    add(r, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Each jump leads to an ending that is placed after all of them. */
static void jump_if(struct rules *r, uint32_t value, size_t to)
{
    assert(to > r->n && to - r->n - 1 <= UINT8_MAX);
    add(r, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (uint8_t)(to - r->n - 1),
                                        0));
}

size_t seccomp_ioctl_rules(struct sock_filter out[SECCOMP_IOCTL_MAX])
{
    enum { HEAD = 5, MASK = 1 };
    const size_t refuse = HEAD + ARRAY_LEN(never) + ARRAY_LEN(single) + MASK + ARRAY_LEN(types);
    const size_t forbid = refuse + 1, allow = refuse + 2, after = refuse + 3;
    struct rules r = { out, 0 };
    /* Pass other calls and other architectures on to the rest of the filter. */
    load(&r, offsetof(struct seccomp_data, nr));
    add(&r, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0,
                                         (uint8_t)(after - 2)));
    load(&r, offsetof(struct seccomp_data, arch));
    add(&r,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 0, (uint8_t)(after - 4)));
    load(&r, offsetof(struct seccomp_data, args[1])); /* the low half: little-endian */
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        jump_if(&r, never[i], forbid);
    for (size_t i = 0; i < ARRAY_LEN(single); i++)
        jump_if(&r, single[i], allow);
    add(&r, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE_MASK));
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        jump_if(&r, types[i] << 8, allow);
    assert(r.n == refuse);
    end(&r, SECCOMP_RET_ERRNO | ENOTTY);
    end(&r, SECCOMP_RET_ERRNO | EPERM);
    end(&r, SECCOMP_RET_ALLOW);
    return r.n;
}
