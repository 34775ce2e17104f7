#include "pmd/mem/alignment_plan.hpp"

#include <algorithm>
#include <cerrno>

namespace rio::pmd::mem {
namespace {

uintptr_t address(const void* va) {
  return reinterpret_cast<uintptr_t>(va);
}

/// Finds bus addresses for ascending pieces of a range.
class RunCursor {
 public:
  RunCursor(std::span<const IovaRun> runs, uintptr_t from) : runs_(runs) {
    const auto it = std::partition_point(runs_.begin(), runs_.end(), [from](const IovaRun& run) {
      return address(run.va) + run.len_bytes <= from;
    });
    at_ = static_cast<size_t>(it - runs_.begin());
  }

  /// @return whether [va, va + len) is contiguous in bus addresses; then `iova` is set.
  bool resolve(uintptr_t va, uint64_t len_bytes, uint64_t* iova) {
    while (at_ < runs_.size() && address(runs_[at_].va) + runs_[at_].len_bytes <= va) {
      ++at_;
    }
    if (at_ == runs_.size() || va < address(runs_[at_].va)) {
      return false;
    }
    const uint64_t start = runs_[at_].iova + (va - address(runs_[at_].va));
    uintptr_t va_end = address(runs_[at_].va) + runs_[at_].len_bytes;
    uint64_t iova_end = runs_[at_].iova + runs_[at_].len_bytes;
    for (size_t next = at_ + 1; va_end - va < len_bytes; ++next) {
      if (next == runs_.size() || address(runs_[next].va) != va_end ||
          runs_[next].iova != iova_end) {
        return false;
      }
      va_end += runs_[next].len_bytes;
      iova_end += runs_[next].len_bytes;
    }
    *iova = start;
    return true;
  }

  /// @param iova of `va`, if it is in a run. @return bytes from there to the run's end, or 0.
  uint64_t reach(uintptr_t va, uint64_t* iova) {
    if (!resolve(va, 1, iova)) {
      return 0;
    }
    return address(runs_[at_].va) + runs_[at_].len_bytes - va;
  }

 private:
  std::span<const IovaRun> runs_;
  size_t at_ = 0;
};

/// A side's demands on a message in place.
struct Demand {
  uint64_t addr_align;
  uint64_t size_align;
  bool pads_from_range;  // the padding may be bytes of the range that follow
};

Demand receive_demand(const AlignRules& rules) {
  return {rules.dedicated_addr, rules.dedicated_size, false};
}

Demand send_demand(const AlignRules& rules) {
  return {rules.tx_addr, 1, true};
}

int check_range(const Range& range, const AlignRules& rules) {
  Cut unused;
  if (const int rc = make_bounced_cut(range.len_bytes, rules, &unused); rc != 0) {
    return rc;
  }
  const bool wraps = range.len_bytes - 1 > UINTPTR_MAX - address(range.va);
  return range.va == nullptr || wraps ? -EINVAL : 0;
}

PlanMessage place(const Range& range, const CutMessage& part, const Demand& demand,
                  RunCursor* cursor) {
  PlanMessage message{};
  message.va = static_cast<uint8_t*>(range.va) + part.offset_bytes;
  message.len_bytes = static_cast<uint16_t>(part.len_bytes);
  message.wire_bytes = static_cast<uint16_t>(part.wire_bytes);
  message.placement = Placement::kBounced;
  uint64_t iova = 0;
  const bool padded_here =
      demand.pads_from_range && part.offset_bytes + part.wire_bytes <= range.len_bytes;
  if ((part.wire_bytes == part.len_bytes || padded_here) &&
      (part.wire_bytes & (demand.size_align - 1)) == 0 &&
      cursor->resolve(address(message.va), part.wire_bytes, &iova) &&
      (iova & (demand.addr_align - 1)) == 0) {  // powers of two, both
    message.iova = iova;
    message.placement = Placement::kInPlace;
  }
  return message;
}

/// Bytes that a cut would place, and whether it would bounce a message of its middle.
struct Trial {
  uint64_t placed = 0;
  bool middle_bounced = false;
};

/// @param any whether one message in place is all that is asked; the rest is then not looked at.
Trial try_cut(const Range& range, const Cut& cut, const AlignRules& rules, bool any) {
  Trial trial;
  RunCursor cursor(range.runs, address(range.va));
  const uint64_t first = cut.head_bytes != 0 ? 1 : 0;
  for (uint64_t i = first; i < first + cut.middle_messages && !(any && trial.placed != 0); ++i) {
    const PlanMessage message =
        place(range, cut_message(cut, rules, i), receive_demand(rules), &cursor);
    if (message.placement == Placement::kInPlace) {
      trial.placed += message.len_bytes;
    } else {
      trial.middle_bounced = true;
    }
  }
  return trial;
}

/// The short way: whole messages of the middle from `first` on, that lie in one run and are in
/// place. @return how many; place() has to look at the next.
uint64_t list_whole(const Range& range, const Cut& cut, const AlignRules& rules,
                    const Demand& demand, Window window, RunCursor* cursor, PlanMessage* out) {
  const uint64_t begin = cut.head_bytes != 0 ? 1 : 0;
  const uint32_t size = rules.message_max;
  // The last of the middle may be shorter.
  if (window.first < begin || window.first >= begin + cut.middle_messages ||
      (size & (demand.size_align - 1)) != 0 || (size & (demand.addr_align - 1)) != 0) {
    return 0;
  }
  const uint64_t most = std::min(window.count, begin + cut.middle_messages - 1 - window.first);
  auto* va = static_cast<uint8_t*>(range.va) + cut_message(cut, rules, window.first).offset_bytes;
  uint64_t iova = 0;
  uint64_t left = cursor->reach(address(va), &iova);
  if ((iova & (demand.addr_align - 1)) != 0) {
    return 0;
  }
  uint64_t n = 0;
  for (; n < most && left >= size; ++n, left -= size, va += size, iova += size) {
    out[n] = {va, iova, static_cast<uint16_t>(size), static_cast<uint16_t>(size),
              Placement::kInPlace};
  }
  return n;
}

void list(const Range& range, const AlignRules& rules, const Demand& demand, Window window,
          bool padded, Plan* out) {
  const uint64_t total = cut_messages(out->cut);
  const uint64_t first = std::min(window.first, total);
  const uint64_t count = std::min(window.count, total - first);
  out->messages.resize(count);
  out->bytes_placed = 0;
  out->bytes_copied = 0;
  RunCursor cursor(range.runs, address(range.va));
  for (uint64_t i = 0; i < count; ++i) {
    const Window rest = {first + i, count - i};
    const uint64_t whole =
        list_whole(range, out->cut, rules, demand, rest, &cursor, &out->messages[i]);
    i += whole;
    out->bytes_placed += whole * rules.message_max;
    if (i == count) {
      break;
    }
    CutMessage part = cut_message(out->cut, rules, first + i);
    if (!padded) {
      part.wire_bytes = part.len_bytes;
    }
    const PlanMessage message = place(range, part, demand, &cursor);
    (message.placement == Placement::kInPlace ? out->bytes_placed : out->bytes_copied) +=
        message.len_bytes;
    out->messages[i] = message;
  }
  out->use = out->bytes_placed == 0 ? Use::kBounced
                                    : (out->bytes_copied == 0 ? Use::kInPlace : Use::kEdges);
}

int plan_side(const Range& range, const Cut& cut, const AlignRules& rules, const Demand& demand,
              Window window, Plan* out) {
  if (const int rc = check_range(range, rules); rc != 0) {
    return rc;
  }
  if (const int rc = check_cut(cut, range.len_bytes, rules); rc != 0) {
    return rc;
  }
  out->cut = cut;
  list(range, rules, demand, window, true, out);
  return 0;
}

}  // namespace

int choose_cut(const Range& range, const AlignRules& rules, Cut* out) {
  if (const int rc = check_range(range, rules); rc != 0) {
    return rc;
  }
  const auto offset = static_cast<uint32_t>(address(range.va) % kMessagePage);
  Cut best;
  if (const int rc = make_cut(offset, range.len_bytes, rules, &best); rc != 0) {
    return rc;
  }
  if (range.runs.empty()) {
    return make_bounced_cut(range.len_bytes, rules, out);
  }
  const bool finer = rules.dedicated_addr < rules.message_max;
  Trial trial = try_cut(range, best, rules, !finer);
  if (finer && trial.middle_bounced) {
    // A card that takes finer addresses, and pages that lie apart: messages within pages place
    // more.
    AlignRules by_page = rules;
    by_page.dedicated_addr = kMessagePage;
    Cut cut;
    if (make_cut(offset, range.len_bytes, by_page, &cut) == 0) {
      const Trial other = try_cut(range, cut, rules, false);
      if (other.placed > trial.placed) {
        best = cut;
        trial = other;
      }
    }
  }
  if (trial.placed == 0) {
    return make_bounced_cut(range.len_bytes, rules, out);
  }
  *out = best;
  return 0;
}

int plan_receive(const Range& range, const Cut& cut, const AlignRules& rules, Window window,
                 Plan* out) {
  return plan_side(range, cut, rules, receive_demand(rules), window, out);
}

bool plan_whole(const Range& range, const Cut& cut, const AlignRules& rules, Window window,
                uint64_t* iova) {
  const uint64_t begin = cut.head_bytes != 0 ? 1 : 0;
  const uint64_t end = begin + cut.middle_messages;
  const uint32_t size = rules.message_max;
  if (window.first < begin || window.first >= end || window.count > end - window.first ||
      (window.count == end - window.first && cut.last_middle_bytes != size) ||
      (size & (rules.dedicated_size - 1)) != 0 || (size & (rules.dedicated_addr - 1)) != 0) {
    return false;
  }
  const uintptr_t va = address(range.va) + cut.head_bytes + (window.first - begin) * size;
  RunCursor cursor(range.runs, va);
  return cursor.reach(va, iova) >= window.count * size && (*iova & (rules.dedicated_addr - 1)) == 0;
}

int plan_receive(const Range& range, const AlignRules& rules, Plan* out) {
  Cut cut;
  if (const int rc = choose_cut(range, rules, &cut); rc != 0) {
    return rc;
  }
  return plan_receive(range, cut, rules, Window{}, out);
}

int plan_send(const Range& range, const Cut& cut, const AlignRules& rules, Window window,
              Plan* out) {
  return plan_side(range, cut, rules, send_demand(rules), window, out);
}

int plan_transmit(const Range& range, const AlignRules& rules, Window window, Plan* out) {
  if (const int rc = check_range(range, rules); rc != 0) {
    return rc;
  }
  if (const int rc = make_bounced_cut(range.len_bytes, rules, &out->cut); rc != 0) {
    return rc;
  }
  list(range, rules, send_demand(rules), window, false, out);
  return 0;
}

}  // namespace rio::pmd::mem
