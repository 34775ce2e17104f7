#include "lib/ofi/completion_queue.hpp"

#include <algorithm>
#include <cstring>

#include "lib/ofi/address_vector.hpp"

namespace rio::ofi {
namespace {

constexpr uint32_t kFirstEntries = 256;

static_assert(offsetof(fi_cq_err_entry, olen) == sizeof(fi_cq_tagged_entry) &&
              offsetof(fi_cq_tagged_entry, tag) == sizeof(fi_cq_data_entry) &&
              offsetof(fi_cq_data_entry, buf) == sizeof(fi_cq_msg_entry) &&
              offsetof(fi_cq_msg_entry, flags) == sizeof(fi_cq_entry));

[[nodiscard]] size_t bytes_of(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
    case FI_CQ_FORMAT_UNSPEC:
      return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    default:
      return sizeof(fi_cq_tagged_entry);
  }
}

ssize_t read(fid_cq* cq, void* out, size_t count) {
  return of<CompletionQueue>(cq).read(out, count, nullptr);
}
ssize_t wait_and_read(fid_cq* cq, void* out, size_t count, const void* condition, int timeout_ms) {
  return of<CompletionQueue>(cq).wait_and_read(out, count, nullptr, condition, timeout_ms);
}

using Self = CompletionQueue;
fi_ops object_ops = object_calls(close_object<Self>, kNoCall, kPlain<Self, &Self::control>);
fi_ops_cq queue_ops = {sizeof(fi_ops_cq),
                       read,
                       kPlain<Self, &Self::read>,
                       kPlain<Self, &Self::read_error>,
                       wait_and_read,
                       kPlain<Self, &Self::wait_and_read>,
                       kPlain<Self, &Self::signal>,
                       error_text};

}  // namespace

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attr, void* user_context)
    : fid_cq{{FI_CLASS_CQ, user_context, &object_ops}, &queue_ops},
      domain_(domain),
      entry_bytes_(bytes_of(attr.format)),
      counts_(attr.wait_cond == FI_CQ_COND_THRESHOLD),
      ring_(kFirstEntries),
      mask_(kFirstEntries - 1) {
  const msg::Guard guard(domain_.port());
  domain_.add(*this);
}

CompletionQueue::~CompletionQueue() {
  const msg::Guard guard(domain_.port());
  domain_.remove(*this);
}

[[gnu::noinline]] void CompletionQueue::grow() {
  std::vector<Completion> larger(ring_.size() * 2);
  const auto mask = static_cast<uint32_t>(larger.size() - 1);
  for (uint32_t i = head_; i != tail_; ++i) {
    larger[i & mask] = ring_[i & mask_];
  }
  ring_.swap(larger);
  mask_ = mask;
}

inline ssize_t CompletionQueue::look_and_take(void* out, size_t count, fi_addr_t* sources) {
  const msg::Guard guard(domain_.port());
  if (is_empty() && count != 0) {
    domain_.reap_transfers();
  }
  if (is_empty() || count == 0) {  // with a count of 0 the caller wants progress only
    domain_.progress();
  }
  return take(out, count, sources);
}

/// Copies the first fields of an entry, with sizes that the compiler knows.
inline void CompletionQueue::copy(const Completion& from, uint8_t* to) const {
  switch (entry_bytes_) {
    case sizeof(fi_cq_tagged_entry):
      std::memcpy(to, &from.entry, sizeof(fi_cq_tagged_entry));
      break;
    case sizeof(fi_cq_entry):
      std::memcpy(to, &from.entry, sizeof(fi_cq_entry));
      break;
    default:
      std::memcpy(to, &from.entry, entry_bytes_);
  }
}

inline ssize_t CompletionQueue::take(void* out, size_t count, fi_addr_t* sources) {
  if (is_empty()) {
    return -FI_EAGAIN;
  }
  auto* const at = static_cast<uint8_t*>(out);
  size_t taken = 0;
  for (; taken < count && !is_empty(); ++taken, ++head_) {
    const Completion& next = ring_[head_ & mask_];
    if (next.error != 0) [[unlikely]] {
      break;
    }
    copy(next, at + taken * entry_bytes_);
    if (sources != nullptr) {
      sources[taken] = next.av == nullptr ? FI_ADDR_NOTAVAIL : next.av->number_of(next.source);
    }
  }
  emptied_ = is_empty();
  return taken != 0 || count == 0 ? static_cast<ssize_t>(taken) : -FI_EAVAIL;
}

ssize_t CompletionQueue::wait_and_read(void* out, size_t count, fi_addr_t* sources,
                                       const void* condition, int timeout_ms) {
  const size_t least =
      counts_ ? std::max<size_t>(reinterpret_cast<uintptr_t>(condition), 1) : size_t{1};
  const int rc = wait_.until(timeout_ms, [this, least] {
    return tail_ - head_ >= least || signalled_ || (!is_empty() && ring_[head_ & mask_].error != 0);
  });
  const msg::Guard guard(domain_.port());
  signalled_ = false;
  return rc < 0 && is_empty() ? rc : take(out, count, sources);
}

void CompletionQueue::disown(uint32_t dest_id) {
  for (uint32_t i = head_; i != tail_; ++i) {
    tag::Address& source = ring_[i & mask_].source;
    source = tag::dest_id_of(source) == dest_id ? tag::kFormerSource : source;
  }
}

void CompletionQueue::forget(const AddressVector& av) {
  for (uint32_t i = head_; i != tail_; ++i) {
    AddressVector*& of = ring_[i & mask_].av;
    of = of == &av ? nullptr : of;
  }
}

void CompletionQueue::signal() {
  const msg::Guard guard(domain_.port());
  signalled_ = true;
  wait_.wake();
}

int CompletionQueue::arm() {
  return wait_.arm([this] { return !is_empty(); });
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry* out, uint64_t) {
  const msg::Guard guard(domain_.port());
  if (is_empty() || ring_[head_ & mask_].error == 0) {
    return -FI_EAGAIN;
  }
  const Completion& next = ring_[head_++ & mask_];
  fi_cq_err_entry all{};
  std::memcpy(&all, &next.entry, sizeof(next.entry));
  all.olen = next.lost_bytes;
  all.err = next.error;
  all.prov_errno = next.error;
  *out = all;
  return 1;
}

int open_completion_queue(fid_domain* domain, fi_cq_attr* attr, fid_cq** out, void* user_context) {
  return no_throw([&] {
    auto made = std::make_unique<CompletionQueue>(of<Domain>(domain), *attr, user_context);
    const int rc = made->waiter().open(attr->wait_obj);
    if (rc == 0) {
      *out = made.release();
    }
    return rc;
  });
}

}  // namespace rio::ofi
