/* Contiguous memory that does not begin where the buffer does, receives that outlive their handles
 * or their communicators, and their errors. ranks: 2 */
#include "tests/mpi/programs/check.h"

enum { kValues = 12, kTypes = 4 };

/* Types of one int: it lies where the buffer does, or behind it, and the next one follows it or
 * not. */
static void commit_all(MPI_Datatype types[kTypes]) {
  const int one = 1;
  MPI_Type_contiguous(1, MPI_INT, &types[0]);
  MPI_Aint place = 2 * (MPI_Aint)sizeof(int);
  MPI_Type_create_hindexed(1, &one, &place, MPI_INT, &types[1]);
  MPI_Type_create_resized(MPI_INT, 0, 3 * (MPI_Aint)sizeof(int), &types[2]);
  place = -(MPI_Aint)sizeof(int);
  MPI_Type_create_hindexed(1, &one, &place, MPI_INT, &types[3]);
  for (int i = 0; i < kTypes; ++i) {
    MPI_Type_commit(&types[i]);
  }
}

static void fill_values(int* values, int seed) {
  for (int i = 0; i < kValues; ++i) {
    values[i] = seed + i;
  }
}

static void send_layouts(int other) {
  MPI_Datatype types[kTypes];
  commit_all(types);
  for (int from = 0; from < kTypes; ++from) {
    for (int to = 0; to < kTypes; ++to) {
      for (int count = 0; count < 4; ++count) {
        int out[kValues];
        int in[kValues];
        MPI_Status status;
        MPI_Request requests[2];
        fill_values(out, 1000 * (check_rank + 1));
        fill_values(in, -1000);
        MPI_Irecv(in + 1, count, types[to], other, from, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out + 1, count, types[from], other, from, MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], &status);
        digest_status(&status, types[to]);
        digest(in, sizeof(in));
        fill_values(in, -1000);
        MPI_Send(out + 1, count, types[from], other, from, MPI_COMM_WORLD);
        MPI_Recv(in + 1, count, types[to], other, from, MPI_COMM_WORLD, &status);
        digest_status(&status, types[to]);
        digest(in, sizeof(in));
      }
    }
  }
}

static void send_from_bottom(int other) {
  static int out = 0;
  static int in = 0;
  const int one = 1;
  MPI_Aint place = 0;
  MPI_Datatype source;
  MPI_Datatype target;
  MPI_Get_address(&out, &place);
  MPI_Type_create_hindexed(1, &one, &place, MPI_INT, &source);
  MPI_Get_address(&in, &place);
  MPI_Type_create_hindexed(1, &one, &place, MPI_INT, &target);
  MPI_Type_commit(&source);
  MPI_Type_commit(&target);
  out = 77 + check_rank;
  MPI_Sendrecv(MPI_BOTTOM, 1, source, other, 0, MPI_BOTTOM, 1, target, other, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  expect(in, 77 + other, "value at an absolute address", 0);
}

/* The second handle goes before the message comes, and so does the communicator. */
static void free_before_the_end(int other) {
  for (int i = 0; i < 200; ++i) {
    int in[3] = {-1, -1, -1};
    const int out[3] = {10 * i + check_rank, 10 * i + 2 + check_rank, 10 * i + 4 + check_rank};
    MPI_Comm copy;
    MPI_Request requests[2];
    MPI_Request freed;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Irecv(&in[0], 1, MPI_INT, other, 0, copy, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, 1, copy, &freed);
    MPI_Request_free(&freed);
    MPI_Irecv(&in[2], 1, MPI_INT, other, 2, copy, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int part = 0; part < 3; ++part) {
      MPI_Send(&out[part], 1, MPI_INT, other, part, copy);
    }
    MPI_Comm_free(&copy);
    const MPI_Fint fortran = MPI_Request_c2f(requests[0]);
    requests[0] = MPI_Request_f2c(fortran);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int found = 0; *(volatile int*)&in[1] == -1;) {
      MPI_Iprobe(other, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    for (int part = 0; part < 3; ++part) {
      expect(in[part], 10 * i + 2 * part + other, "value of round", i);
    }
    digest(in, sizeof(in));
  }
}

/* A receive of a communicator of its own is cancelled when its handle is the last that holds it. */
static void cancel_the_last(void) {
  for (int i = 0; i < 50; ++i) {
    MPI_Comm copy;
    MPI_Request request;
    MPI_Status status;
    int in = -1;
    int is_cancelled = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, &request);
    MPI_Comm_free(&copy);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    expect(is_cancelled, 1, "cancelled", i);
    expect(in, -1, "value of the cancelled", i);
  }
}

static void truncate_one_of_many(int other) {
  char in[3][8];
  const char out[16] = "0123456789abcde";
  MPI_Request requests[3];
  MPI_Status statuses[3];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 3; ++i) {
    MPI_Irecv(in[i], 8, MPI_CHAR, other, i, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) {
    MPI_Send(out, i == 1 ? 16 : 8, MPI_CHAR, other, i, MPI_COMM_WORLD);
  }
  const int rc = MPI_Waitall(3, requests, statuses);
  expect(rc, MPI_ERR_IN_STATUS, "result of MPI_Waitall", 0);
  for (int i = 0; i < 3; ++i) {
    expect(statuses[i].MPI_ERROR, i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS, "error of message", i);
    expect(memcmp(in[i], out, 8), 0, "bytes of message", i);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* A receive for one tag is under way while a message with another one comes. */
static void send_to_itself(void) {
  int in[2] = {-1, -1};
  const int out[2] = {5, 6};
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&out[0], 1, MPI_INT, check_rank, 4, MPI_COMM_WORLD, &requests[1]);
  MPI_Recv(&in[1], 1, MPI_INT, check_rank, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  expect(in[1], 5, "value from itself", 1);
  expect(status.MPI_TAG, 4, "tag from itself", 1);
  MPI_Send(&out[1], 1, MPI_INT, check_rank, 3, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  expect(in[0], 6, "value from itself", 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int other = 1 - check_rank;
  send_layouts(other);
  send_from_bottom(other);
  free_before_the_end(other);
  cancel_the_last();
  truncate_one_of_many(other);
  send_to_itself();
  return end();
}
