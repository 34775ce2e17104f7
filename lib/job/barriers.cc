#include "lib/job/barriers.hpp"

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "base/log.hpp"
#include "lib/job/process.hpp"
#include "lib/msg/waiting.hpp"

namespace rio::job {
namespace {

static_assert(RIO_FI_BARRIER_NAME_BYTES == sizeof(Name) &&
              RIO_FI_BARRIER_SHOWN_MOST == barrier::kShownMost);

/// Programs of MPI may compute for any time before their first barrier.
constexpr uint32_t kCreateMs = 3'600'000;
constexpr uint32_t kFlushMs = 1000;

/// Read the names of a group's members. @param names foreign bytes. @return 0; -EINVAL: one is no
/// name, or of another fabric than the first.
[[nodiscard]] int read_names(const void* names, uint32_t ranks, std::vector<Name>* out) {
  out->resize(ranks);
  const auto* const bytes = static_cast<const uint8_t*>(names);
  // The fabric of the first name is compared with the process's later.
  uint16_t fabric = 0;
  std::memcpy(&fabric, bytes + offsetof(Name, fabric), sizeof(fabric));
  for (uint32_t i = 0; i < ranks; ++i) {
    if (read_name(bytes + size_t{i} * sizeof(Name), fabric, &(*out)[i]) != 0) {
      return -EINVAL;
    }
  }
  return 0;
}

int begin(const void* names, uint32_t ranks, uint32_t rank, uint64_t key, rio_fi_group** out) {
  return no_throw([&] {
    std::vector<Name> members;
    if (rank >= ranks || read_names(names, ranks, &members) != 0) {
      return -EINVAL;
    }
    Process* const process = Process::find(members[rank].owner);
    if (process == nullptr) {
      return -EINVAL;
    }
    const msg::Guard guard(process->port());
    Barriers* barriers = nullptr;
    const int rc = process->open_barriers(&barriers);
    return rc != 0 ? rc : barriers->begin(members, rank, key, out);
  });
}

/// Make a call on a group, under the Guard of its port. @return what the call returns; -ENODEV:
/// the port was closed.
template <class Function>
int guarded(rio_fi_group* group, Function&& call) {
  if (group->owner == nullptr) {
    return -ENODEV;
  }
  const msg::Guard guard(group->owner->process().port());
  return call(*group->group);
}

/// Translate a result to that of rio_fi_barrier.h. @param rc 1: it has ended; 0: not yet; an error.
[[nodiscard]] constexpr int answer(int rc) {
  return rc == 1 ? 0 : rc == 0 ? -EAGAIN : rc;
}

int arrive(rio_fi_group* group, const void* shows, uint32_t bytes) {
  return guarded(group, [&](barrier::Group& each) {
    return each.arrive({static_cast<const uint8_t*>(shows), bytes});
  });
}

/// Ask a group, and if the answer is "not yet", make progress and ask again. @param look asks.
template <class Look>
int look_twice(rio_fi_group* group, Look&& look) {
  return guarded(group, [&](barrier::Group& each) {
    int rc = look(each);
    if (rc == 0) {
      group->owner->progress();
      rc = look(each);
    }
    return answer(rc);
  });
}

int ready(rio_fi_group* group) {
  return look_twice(group, [](const barrier::Group& each) { return each.ready(); });
}

int test(rio_fi_group* group) {
  return look_twice(group, [](const barrier::Group& each) { return each.test(); });
}

uint32_t shown_most(rio_fi_group* group) {
  uint32_t bytes = 0;
  static_cast<void>(guarded(group, [&](const barrier::Group& each) {
    bytes = each.shown_most();
    return 0;
  }));
  return bytes;
}

const void* shown(rio_fi_group* group, uint32_t rank, uint32_t bytes) {
  std::span<const uint8_t> found;
  static_cast<void>(guarded(group, [&](const barrier::Group& each) {
    if (each.shown_most() != 0 && rank < each.ranks()) {
      found = each.shown(rank);
    }
    return 0;
  }));
  return found.size() == bytes ? found.data() : nullptr;
}

int64_t failed_rank(rio_fi_group* group) {
  int64_t rank = -1;
  static_cast<void>(guarded(group, [&](const barrier::Group& each) {
    const barrier::Failure failure = each.failure();
    rank = failure.rank == barrier::kNoPeer ? -1 : int64_t{failure.rank};
    return 0;
  }));
  return rank;
}

void end(rio_fi_group* group) {
  const base::NoCancel no_cancel;
  if (group->owner == nullptr) {
    delete group;
    return;
  }
  const msg::Guard guard(group->owner->process().port());
  group->owner->end(group);
}

constexpr rio_fi_barrier_calls kCalls = {
    RIO_FI_BARRIER_VERSION, 0, begin, ready, arrive, test, shown_most, shown, failed_rank, end};

}  // namespace

int Barriers::open(Process& process, std::unique_ptr<Barriers>* out) {
  std::unique_ptr<Barriers> barriers(new Barriers(process));
  const int rc =
      barrier::BarrierContext::create(process.port(), kBarrierContext, &barriers->context_);
  if (rc == 0) {
    *out = std::move(barriers);
  }
  return rc;
}

Barriers::~Barriers() {
  for (rio_fi_group* const group : groups_) {
    group->group.reset();
    group->owner = nullptr;
  }
  if (context_ != nullptr) {
    static_cast<void>(context_->flush(kFlushMs));
  }
}

int Barriers::begin(std::span<const Name> names, uint32_t rank, uint64_t key, rio_fi_group** out) {
  std::vector<msg::Address> members;
  for (const Name& name : names) {
    uint32_t dest_id = 0;
    if (name.fabric != process_.fabric()) {
      return -EINVAL;
    }
    if (const int rc = process_.reach(name, &dest_id); rc != 0) {
      return rc;
    }
    members.push_back(msg::address(dest_id, kBarrierContext));
  }
  std::unique_ptr<rio_fi_group> group(new rio_fi_group{this, nullptr});
  barrier::GroupOptions options;
  options.key = key;
  options.members_hash =
      base::fnv1a<uint64_t>({reinterpret_cast<const char*>(names.data()), names.size_bytes()});
  options.create_ms = kCreateMs;
  options.way = process_.barrier_way();
  const int rc = context_->create_group(members, rank, options, &group->group);
  if (rc != 0) {
    return rc;
  }
  groups_.push_back(group.get());
  *out = group.release();
  return 0;
}

void Barriers::end(rio_fi_group* group) {
  std::erase(groups_, group);
  delete group;
}

}  // namespace rio::job

extern "C" const rio_fi_barrier_calls* rio_fi_barrier(uint32_t version) {
  return version == RIO_FI_BARRIER_VERSION ? &rio::job::kCalls : nullptr;
}
