/* secrets - E2B's secrets, by the control plane. */
#pragma once
#include "front/http/request.h"

int e2b_secret_create(struct request *req, struct err *err);
int e2b_secret_list(struct request *req, struct err *err);
int e2b_secret_get(struct request *req, struct err *err);
int e2b_secret_update(struct request *req, struct err *err);
int e2b_secret_delete(struct request *req, struct err *err);
