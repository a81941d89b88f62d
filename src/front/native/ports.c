/* GET /v1/sandboxes/{id}/ports: what listens, and where it is reached. */
#include <errno.h>

#include "core/port.h"
#include "front/native/native.h"
#include "front/native/page.h"

void native_put_port(struct jout *j, const struct request *req, const char *sandbox,
                     const struct port *p)
{
    _cleanup_(buf_done) struct buf url = BUF_INIT(512);
    native_preview_url(req, sandbox, p->port, &url);
    jout_open(j, NULL, '{');
    jout_uint(j, "port", p->port);
    jout_str(j, "address", p->address);
    jout_str(j, "protocol", "tcp");
    jout_str(j, "program", p->program[0] ? p->program : NULL);
    jout_str(j, "url", url.len ? url.data : NULL);
    jout_close(j, '}');
}

int native_port_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_free_ struct port *ports = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = native_enter(req, &visit, err);
    if (r >= 0)
        r = port_list(req->core, &visit.s, &ports, &n, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    port_seen(req->core, visit.s.id, ports, n);
    page_open(&page, "ports");
    for (size_t i = 0; i < n; i++) {
        char key[80];
        (void)snprintf(key, sizeof(key), "%05u-%s", ports[i].port, ports[i].address);
        if (page_takes(&page, key))
            native_put_port(&page.json, req, visit.s.id, &ports[i]);
    }
    return page_reply(req, &page);
}
