/* What outlet.c, outlet_opening.c, outlet_http.c and outlet_refusal.c share: one connection out of a sandbox. */
#pragma once
#include "broker/dial.h"
#include "broker/egress_private.h"

struct requests;

enum outlet_state {
    OUTLET_OPENING,  /* its first bytes are awaited; the server may be dialled already */
    OUTLET_RELAY,    /* nothing is looked at any more; the server may still be dialled */
    OUTLET_HELD,     /* refused, which is told in a moment */
    OUTLET_REFUSING, /* a client of HTTP is told why */
    OUTLET_CLOSED,
};

struct outlet {
    struct network *net;
    struct outlet *next, **at;
    struct later later;
    struct deadline deadline;
    struct watch in_watch, out_watch;
    uint32_t in_wanted, out_wanted;
    int in, out; /* the sandbox's side, the world's once it is dialled */
    struct dial dial;
    enum outlet_state state;
    bool spoke_http; /* so that a refusal says why */
    bool heard;      /* a refused client has sent something */
    bool unheard;    /* HELD: its first bytes are awaited, which may be a request over HTTP */
    bool owed;       /* a record of its end: what was refused has its record already */
    enum policy_name named;
    struct requests *http; /* requests that are judged one by one; NULL: there are none */
    struct lane up, down;
    struct policy_answer answer; /* the latest; its rule is good until the rules change */
    struct egress_record rec;
    struct who who;
    struct allot_wait wait;
};

/* ---- outlet.c ---- */
/* A reset rather than an end: the other side must not take what it got for all there is. */
void outlet_end(struct outlet *o, bool reset);
void outlet_close_side(int *fd, bool reset);
bool outlet_is_over(const struct outlet *o);
void outlet_on_deadline(struct deadline *d);
void outlet_wait_opening(struct outlet *o);                    /* what it says must be whole soon */
void outlet_want(struct outlet *o, uint32_t in, uint32_t out); /* events of both sides */
struct policy_answer outlet_judge_named(struct outlet *o, const char *given);
struct policy_answer outlet_judge(struct outlet *o, enum policy_name named);
bool outlet_is_dialling(const struct outlet *o);
void outlet_allow(struct outlet *o, const struct policy_answer *answer);

/* ---- outlet_opening.c ---- */
void outlet_read_opening(struct outlet *o);

/* ---- outlet_http.c ---- */
/* What was read so far is the first of them. */
void outlet_begin_requests(struct outlet *o);
enum lane_state outlet_run_requests(struct outlet *o);
int outlet_hear_answer(struct outlet *o);

/* ---- outlet_refusal.c ---- */
/* http: it speaks it, and is told why; else that is found out, if it says something soon. */
void outlet_refuse(struct outlet *o, const struct policy_answer *answer, bool http);
void outlet_tell_refused(struct outlet *o); /* it was held long enough */
void outlet_on_who(struct who *w, const char *program);
void outlet_hear_out(struct outlet *o);
void outlet_listen_in(struct outlet *o);
