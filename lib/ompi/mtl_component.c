#include <stdlib.h>
#include <string.h>

#include <ompi/communicator/communicator.h>
#include <ompi/runtime/mpiruntime.h>
#include <opal/mca/base/mca_base_var.h>
#include <opal/util/output.h>
#include "lib/ompi/mtl_messages.h"

static const int kPriority = 60; /* above Open MPI's own mtl/ofi, and the pml ob1 */

static void add_parameter(const char* name, const char* help, mca_base_var_type_t type,
                          void* storage) {
  (void)mca_base_component_var_register(&mca_mtl_rio_component.super.mtl_version, name, help, type,
                                        NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY,
                                        storage);
}

static int add_parameters(void) {
  mca_mtl_rio_component.priority = kPriority;
  add_parameter(
      "priority",
      "Priority of messages over the card named by FI_RIO_CARD, FI_RIO_FABRIC or FI_RIO_RELAY",
      MCA_BASE_VAR_TYPE_INT, &mca_mtl_rio_component.priority);
  mca_mtl_rio_component.is_plain = true;
  add_parameter("plain", "Whether messages of contiguous memory pass by the requests of the pml cm",
                MCA_BASE_VAR_TYPE_BOOL, &mca_mtl_rio_component.is_plain);
  return OMPI_SUCCESS;
}

static int open_component(void) {
  mca_mtl_rio_component.core = NULL;
  mca_mtl_rio_component.calls = NULL;
  return mtl_rio_open_plain();
}

static void close_card(void) {
  mtl_rio_component_t* const own = &mca_mtl_rio_component;
  if (own->is_progressing) {
    opal_progress_unregister(mtl_rio_progress);
    own->is_progressing = false;
  }
  if (own->core != NULL) {
    own->calls = NULL;
    rio_mtl_close(own->core);
    own->core = NULL;
  }
}

static int close_component(void) {
  close_card();
  mtl_rio_close_plain();
  return OMPI_SUCCESS;
}

/* Whether the user has chosen this component or a card. Otherwise a job that only has the folder of
 * the component in its path would open a card unasked. */
static bool is_wanted(void) {
  static const char* const kCards[] = {"FI_RIO_CARD", "FI_RIO_FABRIC", "FI_RIO_RELAY"};
  for (size_t i = 0; i < sizeof(kCards) / sizeof(*kCards); ++i) {
    if (getenv(kCards[i]) != NULL) {
      return true;
    }
  }
  const char* const chosen = ompi_mtl_base_framework.framework_selection;
  return chosen != NULL && chosen[0] != '^' && strstr(chosen, "rio") != NULL;
}

/* Opens the card, and publishes the name of this process. A process without a usable card keeps the
 * transports that it has without this component. */
static int query(mca_base_module_t** module, int* priority) {
  mtl_rio_component_t* const own = &mca_mtl_rio_component;
  *module = NULL;
  *priority = -1;
  if (own->priority < 0 || !is_wanted()) {
    return OMPI_ERR_NOT_AVAILABLE;
  }
  char name[RIO_MTL_NAME_BYTES];
  if (rio_mtl_open(ompi_mpi_thread_multiple, &own->core) != 0) {
    return OMPI_ERR_NOT_AVAILABLE;
  }
  int rc = OMPI_ERR_NOT_AVAILABLE;
  if (rio_mtl_name(own->core, name)) {
    OPAL_MODEX_SEND(rc, MTL_RIO_GLOBAL, &own->super.mtl_version, name, sizeof(name));
  }
  if (rc != OMPI_SUCCESS) {
    close_card();
    return rc;
  }
  own->calls = rio_mtl_barriers();
  own->exchange = mtl_rio_exchange;
  *module = (mca_base_module_t*)&mtl_rio_module;
  *priority = own->priority;
  return OMPI_SUCCESS;
}

static mca_mtl_base_module_t* init(MTL_RIO_INIT_PARAMETERS) {
  (void)progress_threads;
  (void)threads;
  MTL_RIO_REFUSE_ACCELERATORS();
  mtl_rio_component_t* const own = &mca_mtl_rio_component;
  if (own->core == NULL) {
    return NULL;
  }
  own->is_progressing = opal_progress_register(mtl_rio_progress) == OPAL_SUCCESS;
  return own->is_progressing ? &mtl_rio_module : NULL;
}

static int finalize(struct mca_mtl_base_module_t* mtl) {
  (void)mtl;
  close_card();
  return OMPI_SUCCESS;
}

/* Ranks have the bits of an index. */
static int add_comm(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm) {
  (void)mtl;
  const int most = 1 << kMtlRioIndexBits;
  if (ompi_comm_size(comm) > most || ompi_comm_remote_size(comm) > most) {
    opal_output(0, "mtl:rio: communicator %s has more than %d ranks; take --mca mtl ofi",
                comm->c_name, most);
    return OMPI_ERR_NOT_SUPPORTED;
  }
  mtl_rio_take_plain(); /* by the first communicator a pml is chosen */
  return OMPI_SUCCESS;
}

static int del_comm(struct mca_mtl_base_module_t* mtl, struct ompi_communicator_t* comm) {
  (void)mtl;
  (void)comm;
  return OMPI_SUCCESS;
}

mca_mtl_base_module_t mtl_rio_module = {
    .mtl_max_contextid = (1 << kMtlRioIndexBits) - 1,
    .mtl_max_tag = INT32_MAX,
    .mtl_request_size = sizeof(mtl_rio_request_t),
    .mtl_flags = 0,
    .mtl_add_procs = mtl_rio_add_procs,
    .mtl_del_procs = mtl_rio_del_procs,
    .mtl_finalize = finalize,
    .mtl_send = mtl_rio_send,
    .mtl_isend = mtl_rio_isend,
    .mtl_irecv = mtl_rio_irecv,
    .mtl_iprobe = mtl_rio_iprobe,
    .mtl_imrecv = mtl_rio_imrecv,
    .mtl_improbe = mtl_rio_improbe,
    .mtl_cancel = mtl_rio_cancel,
    .mtl_add_comm = add_comm,
    .mtl_del_comm = del_comm,
};

mtl_rio_component_t mca_mtl_rio_component = {
    .super =
        {
            .mtl_version =
                {
                    MCA_MTL_BASE_VERSION_2_0_0,
                    RIO_COMPONENT_NAME,
                    .mca_open_component = open_component,
                    .mca_close_component = close_component,
                    .mca_register_component_params = add_parameters,
                    .mca_query_component = query,
                },
            .mtl_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
            .mtl_init = init,
        },
};
