#include <dlfcn.h>

#include <ompi/mca/pml/pml.h>
#include <opal/mca/base/mca_base_var.h>
#include "lib/ompi/coll_rio.h"

static const int kPriority = 90; /* above those of Open MPI's own components */

static int add_parameters(void) {
  mca_coll_rio_component.priority = kPriority;
  (void)mca_base_component_var_register(
      &mca_coll_rio_component.super.collm_version, "priority",
      "Priority of barriers in memory and on the card; negative: they are not used",
      MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY,
      &mca_coll_rio_component.priority);
  return OMPI_SUCCESS;
}

static int open_component(void) {
  coll_rio_component_t* const own = &mca_coll_rio_component;
  OBJ_CONSTRUCT(&own->lock, opal_mutex_t);
  OBJ_CONSTRUCT(&own->busy, opal_list_t);
  OBJ_CONSTRUCT(&own->requests, opal_free_list_t);
  return opal_free_list_init(&own->requests, sizeof(coll_rio_request_t), opal_cache_line_size,
                             OBJ_CLASS(coll_rio_request_t), 0, 0, 0, -1, 8, NULL, 0, NULL, NULL,
                             NULL);
}

static int close_component(void) {
  coll_rio_component_t* const own = &mca_coll_rio_component;
  if (own->is_progressing) {
    opal_progress_unregister(coll_rio_progress);
    own->is_progressing = false;
  }
  OBJ_DESTRUCT(&own->requests);
  OBJ_DESTRUCT(&own->busy);
  OBJ_DESTRUCT(&own->lock);
  return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool threads) {
  (void)progress_threads;
  (void)threads;
  return OMPI_SUCCESS;
}

/* Finds the calls of the library that carries the messages: mtl/rio, or the provider, which
 * libfabric has loaded if any transport uses it. */
static const struct rio_fi_barrier_calls* find_calls(void) {
  const mtl_rio_component_t* const mtl = coll_rio_own_mtl();
  if (mtl != NULL) {
    mca_coll_rio_component.exchange = mtl->exchange;
    return mtl->calls != NULL && mtl->calls->version == RIO_FI_BARRIER_VERSION ? mtl->calls : NULL;
  }
  typedef const struct rio_fi_barrier_calls* (*entry_t)(uint32_t);
  void* const library = dlopen("librio-fi.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) {
    return NULL;
  }
  entry_t entry = NULL;
  *(void**)&entry = dlsym(library, "rio_fi_barrier");
  const struct rio_fi_barrier_calls* const calls =
      entry == NULL ? NULL : entry(RIO_FI_BARRIER_VERSION);
  dlclose(library); /* libfabric keeps it */
  return calls;
}

mca_coll_base_module_t* coll_rio_query(ompi_communicator_t* comm, int* priority) {
  coll_rio_component_t* const own = &mca_coll_rio_component;
  if (own->priority < 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) {
    return NULL;
  }
  if (own->calls == NULL) {
    own->calls = find_calls();
  }
  if (own->calls == NULL || !coll_rio_has_name()) {
    return NULL;
  }
  coll_rio_module_t* const module = OBJ_NEW(coll_rio_module_t);
  if (module == NULL) {
    return NULL;
  }
  *priority = own->priority;
  if (!own->is_progressing) {
    own->is_progressing = opal_progress_register(coll_rio_progress) == OPAL_SUCCESS;
  }
  return &module->super;
}

coll_rio_component_t mca_coll_rio_component = {
    .super =
        {
            .collm_version =
                {
                    COLL_RIO_VERSION,
                    RIO_COMPONENT_NAME,
                    .mca_open_component = open_component,
                    .mca_close_component = close_component,
                    .mca_register_component_params = add_parameters,
                },
            .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
            .collm_init_query = init_query,
            .collm_comm_query = coll_rio_query,
        },
};
