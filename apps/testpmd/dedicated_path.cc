#include "apps/testpmd/dedicated_path.hpp"

#include <bit>
#include <cassert>
#include <cstring>

namespace rio::testpmd {
namespace {

using pmd::mem::BouncePool;
using pmd::mem::Placement;

/// How many transfers of a size each end has buffers for: about 128 KiB, 2 to 32.
uint32_t slots_for(uint32_t stride_bytes) {
  return std::clamp(std::bit_floor(128 * 1024 / stride_bytes), 2u, 32u);
}

}  // namespace

DedicatedEnd::DedicatedEnd(const RunSetup& setup, DedicatedPath& lane, const TestPort& port,
                           Stream& owner)
    : lane_(lane),
      verifier_(setup.verifier),
      owner_(owner),
      size_bytes_(setup.size_bytes),
      port_(port),
      offset_bytes_(setup.options.offset_bytes),
      stride_bytes_((size_bytes_ + offset_bytes_ + 4095) / 4096 * 4096) {
  lane.slots = slots_for(stride_bytes_);
  slots_.resize(lane.slots);
}

int DedicatedEnd::allocate(const char* verb, const char* plan_for, const MakePlan& make_plan,
                           const AddMessage& add, std::string* error) {
  pmd::Bus& bus = port_.card().bus();
  if (const int rc = memory_.allocate(bus, uint64_t{stride_bytes_} * lane_.slots); rc != 0) {
    *error = std::string("no memory to ") + verb + " " + std::to_string(lane_.slots) +
             " transfers of " + std::to_string(size_bytes_) + " bytes; give EAL more (-m 512)";
    return rc;
  }
  const pmd::Caps& caps = port_.card().caps();
  const pmd::mem::AlignRules rules = pmd::mem::align_rules(
      caps.tx_addr_align, caps.dedicated_addr_align, caps.dedicated_size_align,
      caps.quirk_last_at_256 || caps.quirk_last_full_256);
  const pmd::IovaRun run = memory_.run();
  for (uint32_t index = 0; index < lane_.slots; ++index) {
    pmd::mem::Plan& plan = slots_[index].plan;
    const pmd::mem::Range range{.va = bytes(index), .len_bytes = size_bytes_, .runs = {&run, 1}};
    if (const int rc = make_plan(range, rules, &plan); rc != 0) {
      *error = std::string("no alignment plan ") + plan_for + " " + std::to_string(size_bytes_) +
               " bytes at offset " + std::to_string(offset_bytes_) + ": " + std::strerror(-rc);
      return rc;
    }
    const auto bounced = static_cast<uint32_t>(
        std::count_if(plan.messages.begin(), plan.messages.end(),
                      [](const auto& m) { return m.placement == Placement::kBounced; }));
    // All slots have the same plan but for the addresses.
    if (bounced != 0 && !bounce_ && BouncePool::create(bus, bounced * lane_.slots, &bounce_) != 0) {
      *error = "no memory to bounce; give EAL more (-m 512)";
      return -ENOMEM;
    }
    for (const pmd::mem::PlanMessage& message : plan.messages) {
      const bool in_place = message.placement != Placement::kBounced;
      const uint32_t bounce = in_place ? BouncePool::kNone : bounce_->get();
      assert(in_place || bounce != BouncePool::kNone);
      bounces_.push_back(bounce);
      add(index, message, in_place ? message.iova : bounce_->iova(bounce));
    }
    messages_each_ = static_cast<uint32_t>(plan.messages.size());
  }
  return 0;
}

void DedicatedEnd::leave_memory() {
  memory_.leave();
  (void)bounce_.release();
}

}  // namespace rio::testpmd
