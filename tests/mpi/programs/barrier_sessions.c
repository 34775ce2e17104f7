/* Barriers of communicators that MPI_Comm_create_from_group() makes, which Open MPI 5 has. No rank
 * leaves a barrier before all members have entered it. ranks: 2 4 7 */
#include "tests/mpi/programs/barrier_counts.h"

static MPI_Comm from_group(MPI_Group group, const char* tag) {
  MPI_Comm out;
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &out);
  return out;
}

/* Communicators whose index differs between members, since rank 0 has one communicator more. */
static void from_groups(void) {
  MPI_Session session;
  MPI_Group all;
  MPI_Group alone;
  MPI_Comm more = MPI_COMM_NULL;
  unsigned done[2] = {0};
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Group_from_session_pset(session, "mpi://SELF", &alone);
  if (check_rank == 0) {
    more = from_group(alone, "more");
  }
  MPI_Comm one = from_group(all, "one");
  MPI_Comm two = from_group(all, "two");
  at_once(one, 0, &done[0], two, 1, &done[1]);
  blocking(two, 1, &done[1]);
  persistent(one, 0, &done[0]);
  if (check_rank == 0) {
    MPI_Comm_free(&more);
  }
  MPI_Comm_free(&one);
  MPI_Comm_free(&two);
  MPI_Group_free(&all);
  MPI_Group_free(&alone);
  MPI_Session_finalize(&session);
  digest_long(done[0] + done[1]);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  open_counts();
  from_groups();
  MPI_Win_free(&counts_win);
  return end();
}
