/* wire - the framed protocol between warrend and warren-init, and the field codec.
 *
 * One connection carries one operation. A frame is a 16-byte header and a payload.
 * Requests and most answers hold fields (tag, length, value); OUTPUT and INPUT frames hold
 * raw bytes. Bytes in, messages out: no policy here. What comes from the other side is
 * hostile: every length is checked before it is believed. All integers little endian.
 *
 *   client sends              warren-init answers
 *   START  {argv.. env.. ..}  STARTED | ERROR; then OUTPUT*, [DROPPED], EXITED; the client may
 *                             send INPUT, STDIN_EOF, RESIZE, SIGNAL on the same connection
 *                             (PROC not needed); these are not answered, and a STDIN_EOF to a
 *                             terminal types its end-of-file character. A START whose
 *                             header.offset is not 0 lets STARTED wait for what follows it, so
 *                             many milliseconds at most: one wake-up tells of a short command
 *   ATTACH {proc, since}      STARTED | ERROR; then as after START, replayed from `since`
 *   WRITE  {proc, data}       OK once taken | ERROR
 *   CLOSE  {proc}             OK | ERROR                    (end of its stdin)
 *   SIGNAL {proc, signo, scope}  OK | ERROR
 *   RESIZE {proc, rows, cols} OK | ERROR
 *   LIST   {flags}            PROCESS*, then OK             (one frame a process)
 *   PING                      OK {uptime_ms, procs}
 *   SHUTDOWN {grace_ms}       OK once every process is gone, or the grace has passed
 *   PARK                      see wire/park.h
 *   FILE   {op, user, path..} what enum wire_file_op says: the connection is handed to a worker,
 *                             a fork of init that has become the user and does that one thing
 *
 * A process goes on when the connection that started it ends. While a connection is attached
 * the process is held back by it (back-pressure); with nobody attached the ring keeps the
 * newest output and counts what it dropped. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define WIRE_HEADER_SIZE 16
#define WIRE_PAYLOAD_MAX (4u * 1024 * 1024) /* a START: twice the kernel's default ARG_MAX */
#define WIRE_DATA_MAX (64u * 1024)          /* an OUTPUT or INPUT frame: a full pipe */
#define WIRE_BULK_MAX (256u * 1024)         /* a DATA frame */

enum wire_type {
    /* requests */
    WIRE_START = 1,
    WIRE_ATTACH,
    WIRE_WRITE,
    WIRE_CLOSE,
    WIRE_SIGNAL,
    WIRE_RESIZE,
    WIRE_LIST,
    WIRE_PING,
    WIRE_SHUTDOWN,
    WIRE_FILE,
    WIRE_PROBE, /* {port, [path]}: OK once 127.0.0.1 or ::1 takes a connection; path: {status} */
    WIRE_PORTS, /* OK {port, text, inode}..: each TCP socket that listens, and its address */
    WIRE_WHO,   /* {inode..}: OK {text..}: the program that has each socket open; "": none found */
    WIRE_PARK,  /* the keeper's: see wire/park.h */
    WIRE_PARK_NOW, /* raw: the name of a socket */
    /* on an attached connection, client to init */
    WIRE_INPUT = 32, /* raw bytes for stdin or the pty */
    WIRE_STDIN_EOF,
    /* files, both ways */
    WIRE_ENTRY = 48, /* one file, directory, link ...: the fields from WIRE_T_PATH on */
    WIRE_DATA,       /* raw bytes of the entry before it, WIRE_BULK_MAX at most */
    WIRE_END,        /* nothing more will be sent */
    WIRE_MATCH,      /* SEARCH: {path, line, column, offset, text} */
    WIRE_CHANGE,     /* WATCH: {change, entry fields}; REPLACE: {path, count} */
    WIRE_SKIPPED,    /* {path, code, what, message}: this one failed, the walk goes on */
    WIRE_HOLE,       /* WRITE, TREE_IN: {length}: so many zero bytes of the entry before it */
    /* answers */
    WIRE_OK = 64,
    WIRE_ERROR,   /* {code errno, what, message} */
    WIRE_STARTED, /* a process, as in PROCESS */
    WIRE_OUTPUT,  /* raw bytes; header.stream, header.offset */
    WIRE_DROPPED, /* {bytes}: output between header.offset and the next frame is lost */
    WIRE_EXITED,  /* a process, as in PROCESS, with exit fields */
    WIRE_PROCESS,
};

enum wire_stream { WIRE_STDOUT = 1, WIRE_STDERR = 2, WIRE_PTY = 3 };

struct wire_header {
    uint32_t len; /* of the payload */
    uint8_t type;
    uint8_t stream;
    uint16_t zero;
    uint64_t
        offset; /* OUTPUT: bytes of all streams of this process before this frame; START: above */
};

enum wire_tag {
    WIRE_T_ARGV = 1, /* repeated, in order */
    WIRE_T_ENV,      /* repeated "NAME=value" */
    WIRE_T_CWD,
    WIRE_T_USER, /* name or "uid" or "uid:gid"; as docker's --user */
    WIRE_T_FLAGS,
    WIRE_T_ROWS,
    WIRE_T_COLS,
    WIRE_T_TIMEOUT_MS, /* kill the process's tree after this long */
    WIRE_T_LABEL,      /* the caller's own word for the process */
    WIRE_T_NOFILE,     /* RLIMIT_NOFILE */
    WIRE_T_RING,       /* output ring, bytes */
    WIRE_T_PROC,       /* the process's number in this sandbox; never reused while init lives */
    WIRE_T_SINCE,      /* output offset to replay from */
    WIRE_T_DATA,
    WIRE_T_SIGNO,
    WIRE_T_SCOPE,
    WIRE_T_GRACE_MS,
    WIRE_T_PID, /* as seen inside the sandbox */
    WIRE_T_PPID,
    WIRE_T_STATE, /* enum wire_state */
    WIRE_T_EXIT_CODE,
    WIRE_T_EXIT_SIGNAL,
    WIRE_T_REASON,     /* enum wire_reason */
    WIRE_T_STARTED_MS, /* wall clock */
    WIRE_T_ENDED_MS,
    WIRE_T_CPU_US, /* user and system, of the process and its reaped children */
    WIRE_T_RSS_BYTES,
    WIRE_T_OFFSET, /* output bytes produced so far */
    WIRE_T_BYTES,
    WIRE_T_CODE,
    WIRE_T_WHAT, /* stable failure name: program_not_found, user_not_found, ... */
    WIRE_T_MESSAGE,
    WIRE_T_UPTIME_MS,
    WIRE_T_PROCS,
    /* FILE */
    WIRE_T_OP,   /* enum wire_file_op */
    WIRE_T_PATH, /* repeated where an op takes several; in an answer: as the sandbox sees it */
    WIRE_T_TO,   /* MOVE, COPY: where to; SYMLINK: what the link says; REPLACE: the new text */
    WIRE_T_TYPE, /* enum wire_file_type */
    WIRE_T_MODE, /* permission bits, 07777 */
    WIRE_T_UID,
    WIRE_T_GID,
    WIRE_T_OWNER, /* names, where /etc/passwd and /etc/group have them */
    WIRE_T_GROUP,
    WIRE_T_SIZE,
    WIRE_T_BLOCKS, /* bytes really taken */
    WIRE_T_MTIME_NS,
    WIRE_T_ATIME_NS,
    WIRE_T_CTIME_NS,
    WIRE_T_INODE,
    WIRE_T_NLINK,
    WIRE_T_LINK, /* a symbolic link's text; in a tree: the path of the entry it is a hard link to */
    WIRE_T_RDEV,
    WIRE_T_XATTR, /* repeated "name\0value" */
    WIRE_T_ETAG,  /* changes whenever the contents may have; WRITE: must be the present one */
    WIRE_T_LENGTH,
    WIRE_T_DEPTH,
    WIRE_T_LIMIT,
    WIRE_T_AFTER,   /* LIST: go on behind this path */
    WIRE_T_PATTERN, /* a glob on the name, or on the path if it has a slash */
    WIRE_T_TEXT,
    WIRE_T_LINE,
    WIRE_T_COLUMN,
    WIRE_T_COUNT,
    WIRE_T_FILES,
    WIRE_T_DIRS,
    WIRE_T_CHANGE, /* enum wire_change */
    WIRE_T_COOKIE, /* pairs the two halves of a rename */
    /* PROBE */
    WIRE_T_PORT,
    WIRE_T_STATUS, /* of an HTTP answer */
    /* FILE */
    WIRE_T_ROOT, /* a directory that is the operation's root: paths and links lead nowhere else */
};

/* Every op ends with OK or ERROR; an ERROR may name a PATH. A path is absolute, or relative to the
 * user's home; symbolic links in it lead where they lead inside the sandbox. The OK of what makes
 * something has COUNT: 1 it is new, 0 it was there. The client never half-closes: an end of its
 * stream ends the operation. An operation that fails early is told of by an ERROR that can be read
 * although sending fails. */
enum wire_file_op {
    WIRE_FILE_READ = 1,  /* path, [offset, length]: ENTRY with LENGTH, then so many DATA bytes */
    WIRE_FILE_WRITE,     /* path, [mode, etag], flags; then DATA*, END: answers ENTRY */
    WIRE_FILE_STAT,      /* path: ENTRY */
    WIRE_FILE_LIST,      /* path, depth, limit, [after]: ENTRY*, sorted, parents first */
    WIRE_FILE_MKDIR,     /* path, [mode]: ENTRY; COUNT in OK is 0 if it was there */
    WIRE_FILE_MOVE,      /* path, to: ENTRY */
    WIRE_FILE_COPY,      /* path, to: ENTRY */
    WIRE_FILE_REMOVE,    /* path */
    WIRE_FILE_CHMOD,     /* path, mode: ENTRY */
    WIRE_FILE_CHOWN,     /* path, owner ("user", "user:group", ":group", numbers): ENTRY */
    WIRE_FILE_SYMLINK,   /* path, to: ENTRY */
    WIRE_FILE_XATTRS,    /* path: ENTRY with every XATTR the user may read */
    WIRE_FILE_XATTR_SET, /* path, xattr */
    WIRE_FILE_XATTR_RM,  /* path, text: its name */
    WIRE_FILE_TRUNCATE,  /* path, size: ENTRY */
    WIRE_FILE_USAGE,     /* path: OK {bytes, size, files, dirs}; a hard link counts once */
    WIRE_FILE_FIND,      /* path, pattern.., [type], limit: ENTRY* */
    WIRE_FILE_SEARCH,    /* path.., text, pattern.., limit: MATCH*, OK {files, count} */
    WIRE_FILE_REPLACE,   /* path.., text, to, pattern..: CHANGE*, OK {files, count} */
    WIRE_FILE_WATCH,     /* path: OK once it watches, then CHANGE* until the connection ends */
    WIRE_FILE_TREE_OUT,  /* path..: (ENTRY, DATA* of exactly SIZE bytes)* */
    WIRE_FILE_TREE_IN,   /* path: under it (ENTRY, DATA*)*, END are made: OK {files, bytes} */
};

enum wire_file_type {
    WIRE_REGULAR = 1,
    WIRE_DIRECTORY,
    WIRE_SYMLINK,
    WIRE_FIFO,
    WIRE_SOCKET,
    WIRE_CHARDEV,
    WIRE_BLOCKDEV,
    WIRE_HARDLINK, /* only in a tree: another name of LINK */
};

enum wire_change {
    WIRE_CREATED = 1,
    WIRE_WRITTEN,
    WIRE_REMOVED,
    WIRE_RENAMED_FROM,
    WIRE_RENAMED_TO,
    WIRE_ATTRIBUTES,
    WIRE_OVERFLOW
};

enum wire_flag {
    WIRE_F_PTY = 1,       /* a terminal, ROWS x COLS */
    WIRE_F_STDIN = 2,     /* stdin is a pipe kept open; without it stdin is /dev/null */
    WIRE_F_NO_OUTPUT = 4, /* START, ATTACH: only wait for EXITED */
    WIRE_F_ALL = 8,       /* LIST: also what was not started through the API */
    /* FILE */
    WIRE_F_NOFOLLOW = 16,    /* STAT, CHOWN, XATTR*: of the link itself */
    WIRE_F_APPEND = 32,      /* WRITE: to the end, in place */
    WIRE_F_EXCLUSIVE = 64,   /* WRITE, MKDIR, MOVE, COPY: refuse what is there already */
    WIRE_F_NO_PARENTS = 128, /* WRITE, MKDIR, MOVE, COPY: do not make missing directories */
    WIRE_F_RECURSIVE = 256,  /* REMOVE, CHMOD, CHOWN, COPY, WATCH */
    WIRE_F_REGEX = 512,      /* SEARCH, REPLACE: TEXT is an extended regular expression */
    WIRE_F_ICASE = 1024,
    WIRE_F_DRY_RUN = 2048,   /* REPLACE: only tell */
    WIRE_F_FORCE = 4096,     /* REMOVE: what is not there is fine */
    WIRE_F_NUMERIC = 8192,   /* TREE_IN: keep UID and GID instead of giving all to the user */
    WIRE_F_CONTENTS = 16384, /* TREE_OUT of a directory: paths relative to it, itself left out */
    WIRE_F_WHOLE = 32768,    /* TREE_OUT: no HARDLINK, every name comes with its data */
    WIRE_F_XATTRS = 65536, /* STAT, LIST, MOVE, WATCH: entries come with their user.* attributes */
    WIRE_F_FOR_USER =
        131072, /* any: with root's rights; USER has the home, and owns what is made */
};

enum wire_scope { WIRE_SCOPE_PROCESS, WIRE_SCOPE_GROUP, WIRE_SCOPE_TREE };
enum wire_state { WIRE_RUNNING, WIRE_ENDED };
enum wire_reason { WIRE_EXIT, WIRE_SIGNALLED, WIRE_OOM, WIRE_TIMEOUT };

void wire_header_put(unsigned char out[WIRE_HEADER_SIZE], const struct wire_header *h);
/* -EPROTO when the header is not one of ours or its length is over the limit. */
int wire_header_get(const unsigned char in[WIRE_HEADER_SIZE], struct wire_header *ret_h);

/* ---- fields: u8 tag, u32 length, value ---- */

int wire_put(struct buf *b, enum wire_tag tag, const void *p, size_t n);
int wire_put_str(struct buf *b, enum wire_tag tag, const char *s); /* NULL: puts nothing */
int wire_put_u64(struct buf *b, enum wire_tag tag, uint64_t v);

struct wire_field {
    enum wire_tag tag;
    const char *p; /* into the payload; NOT terminated */
    size_t n;
};

struct wire_reader {
    const char *p;
    size_t n;
};

/* 1 and a field, 0 at the end, -EPROTO. */
int wire_next(struct wire_reader *r, struct wire_field *ret_f);
int wire_field_u64(const struct wire_field *f, uint64_t *ret_v);
/* A malloc'd string; -EINVAL if it holds a NUL. */
int wire_field_str(const struct wire_field *f, char **ret_s);

/* ---- blocking helpers, for the side that has a thread per operation ---- */

int wire_send(int fd, enum wire_type type, const struct buf *payload /* may be NULL */);
int wire_send_raw(int fd, enum wire_type type, const void *p, size_t n);
/* Read one frame; the payload replaces what `payload` held. -EPIPE at end of stream,
 * -ETIMEDOUT when timeout_ms (-1: none) passed before the frame began. */
int wire_recv(int fd, struct wire_header *ret_h, struct buf *payload, int timeout_ms);
