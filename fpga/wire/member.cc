#include "fpga/wire/member.hpp"

#include "base/clock.hpp"
#include "fpga/wire/half.hpp"

namespace rio::wire {
namespace {

/// Interval between searches for a partner that is not there.
constexpr uint64_t kLookAgainNs = 5'000'000;
/// Steps in which a wire takes the remaining frames of a partner that is gone.
constexpr uint32_t kLastSteps = 1024;

}  // namespace

Member::Way& Member::way(uint32_t dest_id) {
  std::unique_ptr<Way>& way = ways_[dest_id];
  if (way == nullptr) {
    way = std::make_unique<Way>(Way{closed(false)});
  }
  return *way;
}

model::Outbound* Member::route(uint32_t dest_id) {
  Way& to = way(dest_id);
  if (to.state == Way::kUp || to.state == Way::kLooking) [[likely]] {
    return &to.out;
  }
  if (dest_id - first_id() < ids()) {
    if (self_requests_ == nullptr) {
      self_requests_ = std::make_unique<model::RingBox>(kRequestRingBytes);
      self_responses_ = std::make_unique<model::RingBox>(kResponseRingBytes);
      list_inbound();
    }
    to.state = Way::kUp;
    to.out = {&self_requests_->writer, &self_responses_->writer};
    return &to.out;
  }
  const uint64_t now = base::now_ns();
  if (to.state == Way::kLeaving || (to.looked_ns != 0 && now - to.looked_ns < kLookAgainNs) ||
      !find_member(dest_id)) {
    return nullptr;
  }
  to.looked_ns = now;
  to.state = Way::kLooking;
  to.out.gone = false;
  return &to.out;
}

bool Member::next_change(model::PartnerChange* out) {
  if (changes_.empty()) {
    return false;
  }
  *out = changes_.front();
  changes_.pop_front();
  return true;
}

void Member::list_inbound() {
  inbounds_.clear();
  add_inbound(&inbounds_);
  if (self_requests_ != nullptr) {
    inbounds_.push_back({&self_requests_->reader, &self_responses_->reader, first_id(), ids() - 1});
  }
  inbound_ = inbounds_;
}

void Member::open(const Partner& partner, const model::Outbound& way_there) {
  for_each_way(partner, [&](uint32_t id, Way& to) {
    to.state = Way::kUp;
    to.out = way_there;
    changes_.push_back({id, true, ++to.times});
  });
  list_inbound();
}

void Member::leave(Partner& partner) {
  partner.leaving = true;
  partner.last_steps = kLastSteps;
  for_each_way(partner, [&](uint32_t /*id*/, Way& to) {
    to.state = Way::kLeaving;
    to.out = closed(true);
  });
}

void Member::close(Partner& partner) {
  partner.leaving = false;
  for_each_way(partner, [&](uint32_t id, Way& to) {
    to.state = Way::kUnknown;
    to.looked_ns = 0;
    to.out = closed(true);
    changes_.push_back({id, false, to.times});
  });
}

void Member::absent(const std::function<bool(uint32_t dest_id)>& is_absent) {
  for (const auto& [id, to] : ways_) {
    if (to->state == Way::kLooking && is_absent(id)) {
      to->state = Way::kUnknown;
      to->out.gone = true;
      changes_.push_back({id, false, 0});
    }
  }
}

void Member::set_answerable(const Partner& partner, uint64_t ns) {
  for_each_way(partner, [&](uint32_t /*id*/, Way& to) { to.out.answerable_ns = ns; });
}

void Member::set_asleep(bool asleep) {
  if (asleep_.load(std::memory_order_relaxed) != asleep) {
    asleep_.store(asleep, std::memory_order_release);
    on_asleep(asleep);
  }
}

}  // namespace rio::wire
