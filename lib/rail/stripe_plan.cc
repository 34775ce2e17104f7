#include "lib/rail/stripe_plan.hpp"

#include <algorithm>
#include <bit>

namespace rio::rail {

StripePlan::StripePlan(uint32_t messages, uint32_t window, RailSet rails)
    : messages_(messages), window_(window), is_equal_(true) {
  assert(rails != 0 && rails >> kRails == 0);
  Rates rates{};
  for (RailSet left = rails; left != 0; left &= left - 1) {
    rates[std::countr_zero(left)] = 1;
  }
  divide(rates);
}

StripePlan::StripePlan(uint32_t messages, uint32_t window, const Rates& rates)
    : messages_(messages), window_(window), is_equal_(false) {
  divide(rates);
}

void StripePlan::divide(const Rates& rates) {
  assert(messages_ >= 1 && messages_ <= kMessagesMost && window_ >= 1 && window_ <= kSentAhead);
  uint64_t sum = 0;
  for (const uint32_t rate : rates) {
    assert(rate <= kRateMost);
    sum += rate;
  }
  assert(sum != 0);
  uint64_t before = 0;
  for (uint32_t rail = 0; rail < kRails; ++rail) {
    const auto first = static_cast<uint32_t>(messages_ * before / sum);
    before += rates[rail];
    const auto end = static_cast<uint32_t>(messages_ * before / sum);
    rails_[rail].region = {first, end - first};
    rails_[rail].weight =
        static_cast<uint32_t>((uint64_t{rates[rail]} * kExpected + sum - 1) / sum);
  }
}

/// Most messages that a rail may have now. By rate it is a part of what the rail is expected to
/// bring yet, so that no rail holds up the end; little at the beginning, since the rate may be
/// another one; and at the end enough that the fastest rail does not wait for grants.
uint32_t StripePlan::window_of(uint32_t rail) const {
  if (is_equal_) {
    return window_;
  }
  uint64_t sum = 0;
  uint64_t most = 0;
  for (uint32_t i = 0; i < kRails; ++i) {
    sum += weight_of(i);
    most = std::max(most, weight_of(i));
  }
  const uint64_t least = std::max<uint64_t>(kAtTheEnd * weight_of(rail) / most, 1);
  const uint64_t left = messages_ - arrived_;
  const uint64_t window = std::min(left * weight_of(rail) / (kWindowPart * sum),
                                   kAtTheBeginning + uint64_t{2} * rails_[rail].brought);
  return static_cast<uint32_t>(std::min<uint64_t>(std::max(window, least), window_));
}

/// Take over the end of the region that would be finished last: as much of it as the rail is
/// expected to bring while the other one brings the rest.
void StripePlan::take_over(uint32_t rail) {
  Stripe* from = nullptr;
  uint64_t other_weight = 1;
  for (uint32_t i = 0; i < kRails; ++i) {
    const uint64_t weight = weight_of(i);
    const bool is_open = !is_equal_ || rails_[i].has_failed;
    if (is_open && rails_[i].region.count != 0 &&
        (from == nullptr || rails_[i].region.count * other_weight > from->count * weight)) {
      from = &rails_[i].region;
      other_weight = weight;
    }
  }
  if (from == nullptr) {
    return;
  }
  const uint64_t own = std::max<uint64_t>(weight_of(rail), 1);
  const uint64_t sum = own + other_weight;
  const auto n = static_cast<uint32_t>((from->count * own + sum - 1) / sum);
  from->count -= n;
  rails_[rail].region = {from->first + from->count, n};
}

/// Whether one stripe more may be remembered.
bool StripePlan::may_add() const {
  return count_ < kStripes ||
         (count_ == kStripes && std::all_of(entries_.begin(), entries_.begin() + count_,
                                            [](const Entry& e) { return e.rail == kReturned; }));
}

bool StripePlan::has_left() const {
  return find_returned() != count_ || std::any_of(rails_.begin(), rails_.end(), [](const Rail& r) {
           return r.region.count != 0;
         });
}

/// The returned stripe with the lowest number. @return count_: there is none.
uint32_t StripePlan::find_returned() const {
  uint32_t found = count_;
  for (uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].rail == kReturned &&
        (found == count_ || entries_[i].stripe.first < entries_[found].stripe.first)) {
      found = i;
    }
  }
  return found;
}

/// The stripe that a rail took last. @return count_: it has none.
uint32_t StripePlan::last_of(uint32_t rail) const {
  for (uint32_t i = count_; i-- > 0;) {
    if (entries_[i].rail == rail) {
      return i;
    }
  }
  return count_;
}

void StripePlan::append(Stripe stripe, uint32_t rail) {
  entries_[count_++] = {stripe, static_cast<uint8_t>(rail)};
}

void StripePlan::remove(uint32_t index) {
  std::copy(entries_.begin() + index + 1, entries_.begin() + count_, entries_.begin() + index);
  --count_;
}

Stripe StripePlan::take(uint32_t rail, uint32_t most) {
  assert(rail < kRails);
  const uint32_t window = window_of(rail);
  if (most == 0 || out(rail) > window / 2) {
    return {};
  }
  const uint32_t n = std::min(most, window - out(rail));
  const uint32_t index = find_returned();
  const Stripe stripe = index != count_ ? take_returned(index, rail, n) : take_own(rail, n);
  rails_[rail].taken += stripe.count;
  rails_[rail].has_failed = rails_[rail].has_failed && stripe.count == 0;
  return stripe;
}

Stripe StripePlan::take_returned(uint32_t index, uint32_t rail, uint32_t most) {
  Stripe& from = entries_[index].stripe;
  const Stripe stripe{from.first, std::min(from.count, most)};
  if (stripe.count == from.count) {
    remove(index);
  } else if (may_add()) {
    from.first += stripe.count;
    from.count -= stripe.count;
  } else {
    return {};
  }
  append(stripe, rail);
  return stripe;
}

Stripe StripePlan::take_own(uint32_t rail, uint32_t most) {
  Stripe& region = rails_[rail].region;
  if (region.count == 0) {
    take_over(rail);
  }
  const Stripe stripe{region.first, std::min(region.count, most)};
  if (stripe.count == 0) {
    return {};
  }
  const uint32_t last = last_of(rail);
  if (last != count_ && entries_[last].stripe.end() == stripe.first) {
    entries_[last].stripe.count += stripe.count;
  } else if (may_add()) {
    append(stripe, rail);
  } else {
    return {};
  }
  region.first += stripe.count;
  region.count -= stripe.count;
  return stripe;
}

/// If the sender had stopped at a message that was not delivered, at most kSentAhead would have
/// arrived behind it. So messages that lie further back are in place; all are, if all have arrived.
void StripePlan::arrived(uint32_t rail, uint32_t n) {
  Rail& attempt = rails_[rail];
  assert(n <= out(rail));
  attempt.arrived += n;
  attempt.brought += n;
  arrived_ += n;
  if (attempt.arrived == attempt.taken) {
    forget_leading(rail, attempt.arrived - attempt.certain);
  } else if (attempt.arrived > attempt.certain + kSentAhead) {
    forget_leading(rail, attempt.arrived - kSentAhead - attempt.certain);
  }
}

/// The next `n` leading messages of a rail's attempt are in place.
void StripePlan::forget_leading(uint32_t rail, uint32_t n) {
  rails_[rail].certain += n;
  for (uint32_t i = 0; n > 0;) {
    if (entries_[i].rail != rail) {
      ++i;
      continue;
    }
    Stripe& stripe = entries_[i].stripe;
    const uint32_t gone = std::min(n, stripe.count);
    n -= gone;
    stripe.first += gone;
    stripe.count -= gone;
    if (stripe.count == 0) {
      remove(i);
    }
  }
}

void StripePlan::give_back(uint32_t rail, uint32_t kept) {
  Rail& attempt = rails_[rail];
  const uint32_t stays = std::max(std::min(kept, attempt.arrived), attempt.certain);
  arrived_ -= attempt.arrived - stays;
  attempt.brought -= attempt.arrived - stays;
  forget_leading(rail, stays - attempt.certain);
  attempt.taken = attempt.arrived = attempt.certain = 0;
  attempt.has_failed = true;
  for (uint32_t i = 0; i < count_; ++i) {
    entries_[i].rail = entries_[i].rail == rail ? kReturned : entries_[i].rail;
  }
  merge_returned();
}

/// Make one stripe of returned ones that touch each other.
void StripePlan::merge_returned() {
  for (uint32_t i = 0; i < count_; ++i) {
    for (uint32_t j = 0; entries_[i].rail == kReturned && j < count_;) {
      const Stripe& before = entries_[i].stripe;
      const Stripe& after = entries_[j].stripe;
      if (entries_[j].rail != kReturned || before.end() != after.first) {
        ++j;
        continue;
      }
      entries_[i].stripe.count += after.count;
      remove(j);
      i -= j < i ? 1 : 0;
      j = 0;
    }
  }
}

}  // namespace rio::rail
