/// @file
/// fi_poll_open(): tells which of several queues and counters have news.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/domain.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/fid.hpp"

namespace rio::ofi {

class PollSet : public fid_poll {
 public:
  using Fid = fid_poll;

  PollSet(Domain& domain, void* user_context);

  /// Under a Guard. As fi_poll_add() and fi_poll_del(). @return 0; -FI_EINVAL: neither a queue nor
  /// a counter of this domain; already in the set, or not in it; -FI_EBADFLAGS.
  [[nodiscard]] int add(struct fid* what, uint64_t flags);
  [[nodiscard]] int remove(struct fid* what, uint64_t flags);
  /// Under a Guard. As fi_poll(). @return number of contexts written.
  [[nodiscard]] int poll(void** contexts, int count);
  /// A set with members cannot be closed.
  [[nodiscard]] bool in_use() const { return !members_.empty(); }
  [[nodiscard]] Domain& domain() { return domain_; }

 private:
  struct Member {
    struct fid* what;
    std::function<bool()> has_news;
    Use use;
  };

  [[nodiscard]] std::vector<Member>::iterator find(const struct fid* what);

  Domain& domain_;
  Use use_{domain_};
  std::vector<Member> members_;
};

int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** out);

}  // namespace rio::ofi
