/* Attributes, names and error handlers of communicators travel with dup as they should.
   ranks: 2 */
#include "tests/mpi/programs/check.h"

static int copies, deletes;

static int copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra;
  ++copies;
  *(long*)out = (long)(intptr_t)in + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
static int forget(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++deletes;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int key, found = 0, length;
  MPI_Comm_create_keyval(copy, forget, &key, NULL);
  MPI_Comm comm = MPI_COMM_WORLD, next;
  MPI_Comm_set_attr(comm, key, (void*)(intptr_t)check_rank);
  for (int i = 0; i < 5; ++i) {
    long value = 0;
    void* got = NULL;
    MPI_Comm_dup(comm, &next);
    MPI_Comm_get_attr(next, key, &got, &found);
    value = (long)(intptr_t)got;
    expect(found, 1, "attribute", i);
    expect(value, check_rank + i + 1, "value", i);
    digest_long(value);
    if (comm != MPI_COMM_WORLD) {
      MPI_Comm_free(&comm);
    }
    comm = next;
  }
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm_set_name(comm, "fifth");
  MPI_Comm_get_name(comm, name, &length);
  expect(strcmp(name, "fifth"), 0, "name", 0);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int class = 0;
  MPI_Error_class(MPI_Send(name, 1, MPI_BYTE, check_size + 5, 0, comm), &class);
  expect(class, MPI_ERR_RANK, "error of a wrong rank", 0);
  MPI_Comm_free(&comm);
  expect(copies, 5, "copies", 0);
  expect(deletes, 5, "deletes", 0);
  return end();
}
