/* egress_private - what the parts of egress share: outlets (connections) and names (DNS). */
#pragma once
#include "broker/egress.h"
#include "broker/lane.h"
#include "broker/resolver.h"
#include "net/pins.h"

#define OUTLETS_MAX 2048  /* connections of one sandbox at once */
#define QUESTIONS_MAX 128 /* of one sandbox at once */

struct outlet;
struct names_job;
struct names_stream;

struct network {
    struct egress *egress;
    struct network *next;
    char id[ID_SIZE];
    struct policy policy;
    struct pins *pins;
    struct watch tcp, udp; /* their fds are -1 while there are none */
    int tcp_fd, udp_fd, link_fd;
    struct deadline pause; /* there was no descriptor for another connection */
    struct outlet *outlets;
    size_t n_outlets;
    struct names_job *jobs;
    size_t n_jobs;
    struct names_stream *streams;
    size_t n_streams;
};

struct egress {
    struct loop *loop;
    struct egress_config config;
    struct resolver resolver;
    struct lane_shelf shelf;
    struct range own[64]; /* this machine's addresses */
    size_t n_own;
    int64_t own_mono_ms; /* when they were looked up */
    struct network *networks[256];
};

/* What the operator says, with this machine's addresses as they are now. */
struct policy_limits egress_limits(struct egress *e);
void egress_record(const struct network *n, struct egress_record *rec);
void egress_answered(struct egress_record *rec, const struct policy_answer *answer);

/* ---- outlet.c ---- */
/* A connection that was accepted for `to`; taken. */
void outlet_begin(struct network *n, int fd, const struct address *to, uint16_t port);
void outlets_judge_again(struct network *n); /* the rules have changed */
void outlets_close(struct network *n);

/* ---- names.c ---- */
void names_on_udp(struct watch *w, uint32_t events); /* of a network's udp */
void names_stream_begin(struct network *n, int fd);  /* questions over TCP; taken */
void names_close(struct network *n);
