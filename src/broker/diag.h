/* diag - which socket a connection was made with: the inode of the client's end.
 *
 * The kernel is asked for that one socket, through a netlink socket of the client's namespace; the
 * answer is there when the question is sent, so nothing waits. */
#pragma once
#include <stdint.h>

#include "net/address.h"

struct diag_end {
    struct address address;
    uint16_t port;
};

/* fd: NETLINK_SOCK_DIAG. client: the end that it asks about. 0: it is not there any more. */
uint32_t diag_inode(int fd, bool udp, const struct diag_end *client, const struct diag_end *server);
