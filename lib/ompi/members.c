#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ompi/group/group.h>
#include <ompi/proc/proc.h>
#include "lib/ompi/coll_rio.h"

/* Open MPI's mtl/ofi publishes the name of its endpoint under its own name and version, which are
 * all that a look-up compares. */
static const mca_base_component_t kMtlOfi = {
    .mca_type_name = "mtl",
    .mca_component_name = "ofi",
    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
};

const mtl_rio_component_t* coll_rio_own_mtl(void) {
  const mca_mtl_base_component_t* const mtl = ompi_mtl_base_selected_component;
  if (mtl == NULL || strcmp(mtl->mtl_version.mca_component_name, "rio") != 0) {
    return NULL;
  }
  const mtl_rio_component_t* const own = (const mtl_rio_component_t*)mtl;
  return own->calls == NULL ? NULL : own; /* null: Open MPI has closed it, and takes another pml */
}

/* Reads the name that a process has published. @param out RIO_FI_BARRIER_NAME_BYTES bytes.
 * @return whether there is one of that length. */
static bool read_name(const opal_process_name_t* process, char* out) {
  char* name = NULL;
  size_t bytes = 0;
  int rc = OMPI_SUCCESS;
  const mtl_rio_component_t* const mtl = coll_rio_own_mtl();
  const mca_base_component_t* const component = mtl == NULL ? &kMtlOfi : &mtl->super.mtl_version;
  OPAL_MODEX_RECV(rc, component, process, (void**)&name, &bytes);
  const bool is_one = rc == OMPI_SUCCESS && name != NULL && bytes == RIO_FI_BARRIER_NAME_BYTES;
  if (is_one) {
    memcpy(out, name, bytes);
  }
  free(name);
  return is_one;
}

bool coll_rio_has_name(void) {
  char name[RIO_FI_BARRIER_NAME_BYTES];
  return read_name(&ompi_proc_local_proc->super.proc_name, name);
}

int coll_rio_begin(ompi_communicator_t* comm, rio_fi_group** out) {
  const int size = ompi_comm_size(comm);
  char* const names = malloc((size_t)size * RIO_FI_BARRIER_NAME_BYTES);
  if (names == NULL) {
    return -ENOMEM;
  }
  int rc = 0;
  for (int i = 0; i < size && rc == 0; ++i) {
    const opal_process_name_t process = ompi_group_get_proc_name(comm->c_local_group, i);
    rc = read_name(&process, names + (size_t)i * RIO_FI_BARRIER_NAME_BYTES) ? 0 : -EINVAL;
  }
  if (rc == 0) {
    rc = mca_coll_rio_component.calls->begin(names, (uint32_t)size, (uint32_t)ompi_comm_rank(comm),
                                             coll_rio_key(comm), out);
  }
  free(names);
  return rc;
}
