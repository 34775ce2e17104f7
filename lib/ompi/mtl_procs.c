#include <stdlib.h>
#include <string.h>

#include <opal/util/output.h>
#include "lib/ompi/mtl_rio.h"

bool mtl_rio_read_name(const opal_process_name_t* process, void* out) {
  char* name = NULL;
  size_t bytes = 0;
  int rc = OMPI_SUCCESS;
  OPAL_MODEX_RECV(rc, &mca_mtl_rio_component.super.mtl_version, process, (void**)&name, &bytes);
  const bool is_one = rc == OMPI_SUCCESS && name != NULL && bytes == RIO_MTL_NAME_BYTES;
  if (is_one) {
    memcpy(out, name, bytes);
  }
  free(name);
  return is_one;
}

static int add_proc(struct ompi_proc_t* proc) {
  char name[RIO_MTL_NAME_BYTES];
  if (!mtl_rio_read_name(&proc->super.proc_name, name)) {
    opal_output(0,
                "mtl:rio: rank %u has no mtl/rio; give all ranks the same components, or take "
                "--mca mtl ofi for all (scripts/mpirun-rio --libfabric)",
                (unsigned)proc->super.proc_name.vpid);
    return OMPI_ERR_UNREACH;
  }
  uint32_t address = 0;
  if (rio_mtl_meet(mca_mtl_rio_component.core, name, &address) != 0) {
    return OMPI_ERR_UNREACH;
  }
  /* The number of a peer, with a bit that tells it from null. */
  proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] =
      (void*)(uintptr_t)(UINT64_C(1) << 32 | address);
  return OMPI_SUCCESS;
}

int mtl_rio_add_procs(struct mca_mtl_base_module_t* mtl, size_t count, struct ompi_proc_t** procs) {
  (void)mtl;
  int rc = OMPI_SUCCESS;
  for (size_t i = 0; i < count && rc == OMPI_SUCCESS; ++i) {
    rc = add_proc(procs[i]);
  }
  return rc;
}

int mtl_rio_del_procs(struct mca_mtl_base_module_t* mtl, size_t count, struct ompi_proc_t** procs) {
  (void)mtl;
  for (size_t i = 0; i < count; ++i) {
    procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
  }
  return OMPI_SUCCESS;
}
