// The entry that libfabric calls when it has loaded this library, and libfabric's calls on fabrics
// and domains.
#include "lib/ofi/address_vector.hpp"
#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/domain.hpp"
#include "lib/ofi/event_queue.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/fi_endpoint.hpp"
#include "lib/ofi/info.hpp"
#include "lib/ofi/poll_set.hpp"
#include "lib/ofi/provider.hpp"

namespace rio::ofi {
namespace {

fi_ops_domain domain_ops = {sizeof(fi_ops_domain),
                            open_address_vector,
                            open_completion_queue,
                            FiEndpoint::open,
                            kNoCall,
                            open_counter,
                            open_poll_set,
                            kNoCall,
                            kNoCall,
                            query_atomic,
                            kNoCall,
                            nullptr};

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** out, void* user_context) {
  const int rc = Domain::open(fabric, info, out, user_context);
  if (rc == 0) {
    (*out)->ops = &domain_ops;
  }
  return rc;
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

fi_ops_fabric fabric_ops = {
    sizeof(fi_ops_fabric), open_domain, kNoCall, open_event_queue, kNoCall, try_wait, nullptr};

int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* user_context) {
  return no_throw([&] {
    *out = new FiFabric{
        {{FI_CLASS_FABRIC, user_context, &closing_ops<FiFabric>}, &fabric_ops, attr->api_version},
        {}};
    return 0;
  });
}

}  // namespace
}  // namespace rio::ofi

extern "C" FI_EXT_INI {
  rio::ofi::define_params();
  fi_provider& provider = rio::ofi::provider();
  provider.getinfo = rio::ofi::get_info;
  provider.fabric = rio::ofi::open_fabric;
  return &provider;
}
