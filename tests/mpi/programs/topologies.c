/* Cartesian and graph topologies with collectives of neighbours. ranks: 4 8 */
#include "tests/mpi/programs/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int dims[2] = {0, 0};
  const int periods[2] = {1, 1};
  MPI_Dims_create(check_size, 2, dims);
  MPI_Comm cart;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  int in[4], out[4];
  for (int i = 0; i < 4; ++i) {
    out[i] = 10 * check_rank + i;
  }
  MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, cart);
  digest(in, sizeof(in));
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, cart);
  digest(in, sizeof(in));
  const int sources[2] = {(check_rank + check_size - 1) % check_size,
                          (check_rank + check_size - 2) % check_size};
  const int targets[2] = {(check_rank + 1) % check_size, (check_rank + 2) % check_size};
  MPI_Comm graph;
  const int weights[2] = {1, 1};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, targets, weights,
                                 MPI_INFO_NULL, 0, &graph);
  MPI_Request request;
  MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, graph, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(in[0], 10 * sources[0], "first neighbour", 0);
  expect(in[1], 10 * sources[1] + 1, "second neighbour", 1);
  digest(in, 2 * sizeof(int));
  MPI_Comm_free(&graph);
  MPI_Comm_free(&cart);
  return end();
}
