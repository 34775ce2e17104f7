#include "lib/msg/recv_stripes.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

[[nodiscard]] uint64_t page_of(const uint8_t* at) {
  return reinterpret_cast<uintptr_t>(at) % pmd::mem::kMessagePage;
}

}  // namespace

bool RecvStripes::divide(RecvTransfer& whole) {
  Link& link = *whole.link;
  if (link.peer_rails == nullptr || whole.grant.attempt() != 0) {
    return false;
  }
  const bool is_equal = link.peer_rails->chooser->has_equal_stripes();
  if (!is_equal && whole.rest_bytes < 2 * kBytesLeast) {
    return false;
  }
  const rail::RailSet rails = works_.paths.stripe_rails(link, whole.rest_bytes);
  const auto count = static_cast<uint32_t>(std::popcount(rails));
  if (count == 1) {
    whole.path = link.paths[std::countr_zero(rails)].get();
  }
  Stripes<RecvTransfer>* const stripes = count > 1 ? divided_.get() : nullptr;
  if (stripes == nullptr) {
    return false;
  }
  *stripes = {.whole = &whole,
              .each_bytes = is_equal ? (whole.rest_bytes + count - 1) / count
                                     : std::max(kBytesLeast, whole.rest_bytes / kParts)};
  whole.stripes = stripes;
  for (uint32_t i = 0; i < (is_equal ? 1 : kEachRail); ++i) {
    for (rail::RailSet left = rails; left != 0; left &= left - 1) {
      static_cast<void>(add(whole, *link.paths[std::countr_zero(left)]));
    }
  }
  if (stripes->live == 0) {
    free(whole);
    return false;
  }
  return true;
}

/// @return false: no memory.
bool RecvStripes::add(RecvTransfer& whole, Path& path) {
  RecvTransfer* const stripe = stripes_.get();
  if (stripe != nullptr) {
    make(*stripe, *whole.stripes, path);
    ++whole.stripes->live;
    path.rail.queues.assigner().wait(path.source, stripe->waiter);
  }
  return stripe != nullptr;
}

/// Make a stripe as new, without a part.
void RecvStripes::make(RecvTransfer& stripe, Stripes<RecvTransfer>& of, Path& path) {
  stripe.context = of.whole->context;
  stripe.link = of.whole->link;
  stripe.path = &path;
  stripe.id = of.whole->id;
  stripe.stripes = &of;
  stripe.waiter.transfer = &stripe;
  stripe.link->large.receives.append(stripe);
}

void RecvStripes::take(RecvTransfer& stripe) {
  Stripes<RecvTransfer>& of = *stripe.stripes;
  RecvTransfer& whole = *of.whole;
  stripe.rest = whole.rest + of.taken_bytes;
  stripe.rest_bytes = whole.rest_bytes - of.taken_bytes;
  if (stripe.rest_bytes > of.each_bytes + of.each_bytes / 2) {
    // Whole pages, so that only the first stripe has a head and the last one a tail.
    stripe.rest_bytes = of.each_bytes - page_of(stripe.rest + of.each_bytes);
  }
  stripe.stripe = static_cast<uint8_t>(++of.begun);
  of.taken_bytes += stripe.rest_bytes;
  works_.paths.granted().posted(stripe.path->rail.index, stripe.rest_bytes);
  if (of.taken_bytes == whole.rest_bytes) {
    drop_idle(whole);
  }
}

void RecvStripes::move(const RecvTransfer& stripe, const Path& to) {
  works_.paths.granted().dropped(stripe.path->rail.index, stripe.rest_bytes);
  works_.paths.granted().posted(to.rail.index, stripe.rest_bytes);
}

RecvTransfer* RecvStripes::end(RecvTransfer& stripe, int status) {
  Stripes<RecvTransfer>& of = *stripe.stripes;
  Path& path = *stripe.path;
  if (status == 0) {
    of.done_bytes += stripe.rest_bytes;
    works_.paths.granted().completed(path.rail.index, stripe.rest_bytes, base::now_ns());
  } else {
    works_.paths.granted().dropped(path.rail.index, stripe.rest_bytes);
  }
  const bool is_next = goes_on(stripe, status);
  std::destroy_at(&stripe);
  std::construct_at(&stripe);
  if (is_next) {
    make(stripe, of, path);
    path.rail.queues.assigner().wait_first(path.source, stripe.waiter);
    return nullptr;
  }
  stripes_.put(&stripe);
  --of.live;
  return of.live == 0 ? of.whole : nullptr;
}

/// Whether the rail of a stripe that is over is to bring another one: not if the others would have
/// brought all of the transfer by then.
bool RecvStripes::goes_on(const RecvTransfer& stripe, int status) const {
  const Stripes<RecvTransfer>& of = *stripe.stripes;
  const uint64_t left = of.whole->rest_bytes - of.taken_bytes;
  if (stripe.dead || status != 0 || left == 0 ||
      of.whole->grant.state() != RecvGrant::State::kWaiting || stripe.link->peer_rails == nullptr) {
    return false;
  }
  if (of.live == 1) {
    return true;
  }
  if (!stripe.path->state.is_up() || stripe.link->peer_rails->chooser->has_equal_stripes()) {
    return false;
  }
  const rail::RailLoads& loads = works_.paths.granted();
  const uint32_t own = stripe.path->rail.index;
  const uint64_t own_ns = loads.finish_ns(own, std::min(left, of.each_bytes));
  for (const std::unique_ptr<Path>& path : stripe.link->paths) {
    if (path != nullptr && path->rail.index != own && path->is_found && path->state.is_up() &&
        loads.finish_ns(path->rail.index, left) < own_ns) {
      return false;
    }
  }
  return true;
}

void RecvStripes::drop_idle(RecvTransfer& whole) {
  whole.link->large.receives.for_each([&](RecvTransfer& each) {
    if (each.is_stripe() && each.stripes == whole.stripes && each.rest_bytes == 0) {
      each.path->rail.queues.assigner().unwait(each.waiter);
      whole.link->large.receives.remove(each);
      stripes_.put(&each);
      --whole.stripes->live;
    }
  });
}

void RecvStripes::free(RecvTransfer& whole) {
  divided_.put(std::exchange(whole.stripes, nullptr));
}

}  // namespace rio::msg
