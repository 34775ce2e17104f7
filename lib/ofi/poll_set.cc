#include "lib/ofi/poll_set.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/fi_counter.hpp"

namespace rio::ofi {
namespace {

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

fi_ops_poll poll_ops = {sizeof(fi_ops_poll), kGuarded<PollSet, &PollSet::poll>,
                        kNoThrow<PollSet, &PollSet::add>, kGuarded<PollSet, &PollSet::remove>};

PollSet::PollSet(Domain& domain, void* user_context)
    : fid_poll{{FI_CLASS_POLL, user_context, &closing_ops<PollSet>}, &poll_ops}, domain_(domain) {}

std::vector<PollSet::Member>::iterator PollSet::find(const struct fid* what) {
  return std::find_if(members_.begin(), members_.end(),
                      [what](const Member& member) { return member.what == what; });
}

int PollSet::add(struct fid* what, uint64_t flags) {
  if (flags != 0 || find(what) != members_.end()) {
    return flags != 0 ? -FI_EBADFLAGS : -FI_EINVAL;
  }
  if (what->fclass == FI_CLASS_CQ && &of<CompletionQueue>(what).domain() == &domain_) {
    CompletionQueue& queue = of<CompletionQueue>(what);
    members_.push_back({what, [&queue] { return !queue.is_empty(); }, Use(queue)});
    return 0;
  }
  if (what->fclass == FI_CLASS_CNTR && &of<FiCounter>(what).domain() == &domain_) {
    FiCounter& counter = of<FiCounter>(what);
    const auto has_news = [&counter, seen = FiCounter::Values{}]() mutable {
      const FiCounter::Values now = counter.values();
      return std::exchange(seen, now) != now;
    };
    members_.push_back({what, has_news, Use(counter)});
    return 0;
  }
  return -FI_EINVAL;
}

int PollSet::remove(struct fid* what, uint64_t flags) {
  const auto found = find(what);
  if (flags != 0 || found == members_.end()) {
    return flags != 0 ? -FI_EBADFLAGS : -FI_EINVAL;
  }
  members_.erase(found);
  return 0;
}

int PollSet::poll(void** contexts, int count) {
  domain_.progress();
  int told = 0;
  for (Member& member : members_) {
    if (told == count) {
      break;
    }
    if (member.has_news()) {
      contexts[told++] = member.what->context;
    }
  }
  return told;
}

}  // namespace

int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** out) {
  return no_throw([&] {
    if (attr != nullptr && attr->flags != 0) {
      return -FI_EBADFLAGS;
    }
    *out = new PollSet(of<Domain>(domain), nullptr);
    return 0;
  });
}

}  // namespace rio::ofi
