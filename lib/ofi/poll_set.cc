#include "lib/ofi/poll_set.hpp"

#include <algorithm>
#include <utility>

#include "lib/msg/waiting.hpp"

namespace rio::ofi {
namespace {

int poll(fid_poll* set, void** contexts, int count) {
  PollSet& self = of<PollSet>(set);
  const msg::Guard guard(self.domain().port());
  self.domain().progress();
  return self.poll(contexts, count);
}
int add(fid_poll* set, fid* what, uint64_t flags) {
  return no_throw([&] {
    PollSet& self = of<PollSet>(set);
    const msg::Guard guard(self.domain().port());
    return flags != 0 ? -FI_EBADFLAGS : self.add(*what);
  });
}
int remove(fid_poll* set, fid* what, uint64_t flags) {
  PollSet& self = of<PollSet>(set);
  const msg::Guard guard(self.domain().port());
  return flags != 0 ? -FI_EBADFLAGS : self.remove(*what);
}
int close(fid* fid) {
  return of<PollSet>(fid).is_empty() ? close_object<PollSet>(fid) : -FI_EBUSY;
}

fi_ops object_ops = {sizeof(fi_ops), close, no_bind, no_control, no_ops_open, nullptr, nullptr};
fi_ops_poll poll_ops = {sizeof(fi_ops_poll), poll, add, remove};

}  // namespace

PollSet::PollSet(Domain& domain, void* user_context)
    : fid_poll{{FI_CLASS_POLL, user_context, &object_ops}, &poll_ops}, domain_(domain) {}

std::vector<PollSet::Member>::iterator PollSet::find(const struct fid& what) {
  return std::find_if(members_.begin(), members_.end(),
                      [&](const Member& member) { return member.what == &what; });
}

int PollSet::add(struct fid& what) {
  if (find(what) != members_.end()) {
    return -FI_EINVAL;
  }
  if (what.fclass == FI_CLASS_CQ && &of<CompletionQueue>(&what).domain() == &domain_) {
    CompletionQueue& queue = of<CompletionQueue>(&what);
    members_.push_back({&what, &queue, nullptr, Use(queue)});
    return 0;
  }
  if (what.fclass == FI_CLASS_CNTR && &of<FiCounter>(&what).domain() == &domain_) {
    FiCounter& counter = of<FiCounter>(&what);
    members_.push_back({&what, nullptr, &counter, Use(counter)});
    return 0;
  }
  return -FI_EINVAL;
}

int PollSet::remove(struct fid& what) {
  const auto found = find(what);
  if (found == members_.end()) {
    return -FI_EINVAL;
  }
  members_.erase(found);
  return 0;
}

bool PollSet::has_news(Member& member) {
  if (member.queue != nullptr) {
    return !member.queue->is_empty();
  }
  const FiCounter::Values now = member.counter->values();
  return std::exchange(member.seen, now) != now;
}

int PollSet::poll(void** contexts, int count) {
  int told = 0;
  for (Member& member : members_) {
    if (told == count) {
      break;
    }
    if (has_news(member)) {
      contexts[told++] = member.what->context;
    }
  }
  return told;
}

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
