#include "lib/ofi/domain_calls.hpp"

#include "lib/ofi/address_vector.hpp"
#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/domain.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/fi_endpoint.hpp"
#include "lib/ofi/fi_fabric.hpp"
#include "lib/ofi/memory.hpp"
#include "lib/ofi/poll_set.hpp"

namespace rio::ofi {
namespace {

int no_scalable(fid_domain*, fi_info*, fid_ep**, void*) {
  return -FI_ENOSYS;
}
int no_stx(fid_domain*, fi_tx_attr*, fid_stx**, void*) {
  return -FI_ENOSYS;
}
int no_srx(fid_domain*, fi_rx_attr*, fid_ep**, void*) {
  return -FI_ENOSYS;
}
int no_collective(fid_domain*, fi_collective_op, fi_collective_attr*, uint64_t) {
  return -FI_ENOSYS;
}
fi_ops object_ops = {
    sizeof(fi_ops), close_object<Domain>, no_bind, no_control, no_ops_open, nullptr, nullptr};
fi_ops_domain domain_ops = {sizeof(fi_ops_domain),
                            open_address_vector,
                            open_completion_queue,
                            open_endpoint,
                            no_scalable,
                            open_counter,
                            open_poll_set,
                            no_stx,
                            no_srx,
                            query_atomic,
                            no_collective,
                            nullptr};
}  // namespace

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** out, void* user_context) {
  return no_throw([&] {
    std::unique_ptr<Domain> domain;
    const int rc = Domain::open(of<FiFabric>(fabric), *info, user_context, &domain);
    if (rc == 0) {
      domain->fid.ops = &object_ops;
      domain->ops = &domain_ops;
      domain->mr = memory_ops();
      *out = domain.release();
    }
    return rc;
  });
}

}  // namespace rio::ofi
