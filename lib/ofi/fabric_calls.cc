#include "lib/ofi/fabric_calls.hpp"

#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/domain_calls.hpp"
#include "lib/ofi/event_queue.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/fi_fabric.hpp"

namespace rio::ofi {
namespace {

int no_passive(fid_fabric*, fi_info*, fid_pep**, void*) {
  return -FI_ENOSYS;
}
int no_wait_set(fid_fabric*, fi_wait_attr*, fid_wait**) {
  return -FI_ENOSYS;
}
/// Event queues have no descriptor to wait on.
int try_wait(fid_fabric*, fid** fids, int count) {
  for (int i = 0; i < count; ++i) {
    const size_t kind = fids[i]->fclass;
    const int rc = kind == FI_CLASS_CQ     ? of<CompletionQueue>(fids[i]).arm()
                   : kind == FI_CLASS_CNTR ? of<FiCounter>(fids[i]).arm()
                   : kind == FI_CLASS_EQ   ? 0
                                           : -FI_EINVAL;
    if (rc != 0) {
      return rc;
    }
  }
  return 0;
}

fi_ops object_ops = {
    sizeof(fi_ops), close_object<FiFabric>, no_bind, no_control, no_ops_open, nullptr, nullptr};
fi_ops_fabric fabric_ops = {sizeof(fi_ops_fabric), open_domain, no_passive, open_event_queue,
                            no_wait_set,           try_wait,    nullptr};

}  // namespace

int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* user_context) {
  return no_throw([&] {
    *out = new FiFabric{
        {{FI_CLASS_FABRIC, user_context, &object_ops}, &fabric_ops, attr->api_version}, {}};
    return 0;
  });
}

}  // namespace rio::ofi
