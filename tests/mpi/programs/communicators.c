/* Messages of communicators are apart: dup, split, groups, intercommunicators. ranks: 4 8 */
#include "tests/mpi/programs/check.h"

static int exchange(MPI_Comm comm, int value) {
  int rank, size, got = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size,
               0, comm, MPI_STATUS_IGNORE);
  return got;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm comms[4];
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &comms[1]);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms[2]);
  MPI_Group world, upper;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int range[1][3] = {{check_size / 2, check_size - 1, 1}};
  MPI_Group_range_incl(world, 1, range, &upper);
  comms[3] = MPI_COMM_NULL;
  if (check_rank >= check_size / 2) {
    MPI_Comm_create_group(MPI_COMM_WORLD, upper, 4, &comms[3]);
  }
  for (int i = 0; i < 4; ++i) {
    if (comms[i] != MPI_COMM_NULL) {
      digest_long(exchange(comms[i], 100 * check_rank + i));
    }
  }
  /* Two communicators use one tag and one peer at once. */
  int first = -1, second = -1, out = check_rank;
  MPI_Request requests[2];
  const int right = (check_rank + 1) % check_size;
  const int left = (check_rank + check_size - 1) % check_size;
  MPI_Irecv(&second, 1, MPI_INT, left, 1, comms[0], &requests[0]);
  MPI_Irecv(&first, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Send(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
  out += 1000;
  MPI_Send(&out, 1, MPI_INT, right, 1, comms[0]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  expect(first, left, "of the world", 0);
  expect(second, left + 1000, "of the other", 0);
  MPI_Comm inter, merged;
  MPI_Intercomm_create(comms[1], 0, MPI_COMM_WORLD,
                       check_rank % 2 ? check_size - 2 : check_size - 1, 7, &inter);
  int remote = 0, sum = 0;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
  digest_long(remote);
  digest_long(sum);
  MPI_Intercomm_merge(inter, check_rank % 2, &merged);
  digest_long(exchange(merged, check_rank));
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  for (int i = 0; i < 4; ++i) {
    if (comms[i] != MPI_COMM_NULL) {
      MPI_Comm_free(&comms[i]);
    }
  }
  return end();
}
