#pragma once
#include "../functions.h"

// The declarations of libpq that Sources/Stores/SQL uses, instead of <libpq-fe.h>: a build needs no header of
// it, and nothing is linked with it (docs/decisions/0070-postgresql.md). script/lint compiles this shim after
// the header, so that a declaration that differs does not compile. Source: libpq 15.

#ifndef LIBPQ_FE_H
typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef unsigned int Oid;
typedef void (*PQnoticeProcessor)(void *arg, const char *message);
typedef struct pgNotify PGnotify;
#endif

// The connection. Enumerations have the integer type of the ABI.
PGconn *PQconnectStartParams(const char *const *keywords, const char *const *values, int expand_dbname);
void PQfinish(PGconn *conn);
int PQsocket(const PGconn *conn);
int PQserverVersion(const PGconn *conn);
char *PQerrorMessage(const PGconn *conn);
int PQsetnonblocking(PGconn *conn, int arg);
PQnoticeProcessor PQsetNoticeProcessor(PGconn *conn, PQnoticeProcessor proc, void *arg);
#ifndef LIBPQ_FE_H
unsigned PQconnectPoll(PGconn *conn);
unsigned PQstatus(const PGconn *conn);
unsigned PQtransactionStatus(const PGconn *conn);
unsigned PQresultStatus(const PGresult *res);
#endif

// Commands.
int PQenterPipelineMode(PGconn *conn);
int PQexitPipelineMode(PGconn *conn);
int PQpipelineSync(PGconn *conn);
int PQsendQuery(PGconn *conn, const char *query);
int PQsendPrepare(
    PGconn *conn, const char *stmtName, const char *query, int nParams, const Oid *paramTypes);
int PQsendQueryPrepared(
    PGconn *conn, const char *stmtName, int nParams, const char *const *paramValues, const int *paramLengths,
    const int *paramFormats, int resultFormat);
int PQflush(PGconn *conn);
int PQconsumeInput(PGconn *conn);
int PQisBusy(PGconn *conn);
PGresult *PQgetResult(PGconn *conn);
PGnotify *PQnotifies(PGconn *conn);
void PQfreemem(void *ptr);

// Results.
int PQntuples(const PGresult *res);
Oid PQftype(const PGresult *res, int field_num);
char *PQgetvalue(const PGresult *res, int tup_num, int field_num);
int PQgetlength(const PGresult *res, int tup_num, int field_num);
int PQgetisnull(const PGresult *res, int tup_num, int field_num);
char *PQcmdStatus(PGresult *res);
char *PQcmdTuples(PGresult *res);
char *PQresultErrorField(const PGresult *res, int fieldcode);
void PQclear(PGresult *res);

#define CS_PQ(F)                                                                                               \
    F(PQclear) F(PQcmdStatus) F(PQcmdTuples) F(PQconnectPoll) F(PQconnectStartParams) F(PQconsumeInput)                       \
    F(PQenterPipelineMode) F(PQerrorMessage) F(PQexitPipelineMode) F(PQfinish) F(PQflush) F(PQfreemem)         \
    F(PQftype)                                                                                                 \
    F(PQgetResult) F(PQgetisnull) F(PQgetlength) F(PQgetvalue) F(PQisBusy) F(PQnotifies) F(PQntuples)          \
    F(PQpipelineSync)                                                                                          \
    F(PQresultErrorField) F(PQresultStatus) F(PQsendPrepare) F(PQsendQuery) F(PQsendQueryPrepared)             \
    F(PQserverVersion) F(PQsetNoticeProcessor) F(PQsetnonblocking) F(PQsocket) F(PQstatus)                     \
    F(PQtransactionStatus)
CS_FUNCTIONS(cs_pq_functions, CS_PQ)
