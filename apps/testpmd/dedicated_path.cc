#include "apps/testpmd/dedicated_path.hpp"

#include <bit>
#include <cassert>
#include <cstring>

#include "apps/testpmd/text.hpp"

namespace rio::testpmd {

using pmd::mem::BouncePool;
using pmd::mem::Placement;

DedicatedEnd::DedicatedEnd(const RunSetup& setup, std::shared_ptr<DedicatedPath> path,
                           const TestPort& port, Stream& owner)
    : shared_(std::move(path)),
      path_(*shared_),
      verifier_(setup.verifier),
      owner_(owner),
      size_bytes_(setup.size_bytes),
      port_(port),
      offset_bytes_(setup.options.offset_bytes),
      stride_bytes_((size_bytes_ + offset_bytes_ + 4095) / 4096 * 4096) {
  // Buffers for about 128 KiB at each end, 2 to 32.
  path_.slots = std::clamp(std::bit_floor(128 * 1024 / stride_bytes_), 2u, 32u);
  slots_.resize(path_.slots);
}

int DedicatedEnd::allocate(const char* verb, const MakePlan& make_plan, const AddMessage& add,
                           std::string* error) {
  pmd::Bus& bus = port_.card().bus();
  if (memory_.allocate(bus, uint64_t{stride_bytes_} * path_.slots) != 0) {
    return fail(error, "no memory to %s %u transfers of %u bytes; give EAL more (-m 512)", verb,
                path_.slots, size_bytes_);
  }
  const pmd::Caps& caps = port_.card().caps();
  const pmd::mem::AlignRules rules = pmd::mem::align_rules(
      caps.tx_addr_align, caps.dedicated_addr_align, caps.dedicated_size_align,
      caps.quirk_last_at_256 || caps.quirk_last_full_256);
  const pmd::IovaRun run = memory_.run();
  for (uint32_t index = 0; index < path_.slots; ++index) {
    pmd::mem::Plan& plan = slots_[index].plan;
    const pmd::mem::Range range{.va = bytes(index), .len_bytes = size_bytes_, .runs = {&run, 1}};
    if (const int rc = make_plan(range, rules, &plan); rc != 0) {
      return fail(error, "no alignment plan to %s %u bytes at offset %u: %s", verb, size_bytes_,
                  offset_bytes_, std::strerror(-rc));
    }
    const auto bounced = static_cast<uint32_t>(
        std::count_if(plan.messages.begin(), plan.messages.end(),
                      [](const auto& m) { return m.placement == Placement::kBounced; }));
    // All slots have the same plan but for the addresses, since they are whole pages apart and no
    // card asks for more than a page: so the pool never runs dry.
    if (bounced != 0 && !bounce_ && BouncePool::create(bus, bounced * path_.slots, &bounce_) != 0) {
      return fail(error, "no memory to bounce; give EAL more (-m 512)");
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
