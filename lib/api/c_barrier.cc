// riomsg.h: barriers.
#include "lib/api/handles.hpp"

using rio::api::guarded;
using rio::api::no_throw;
using rio::barrier::BarrierContext;
using rio::barrier::GroupOptions;
using rio::barrier::Way;

static_assert(static_cast<uint32_t>(Way::kAny) == RIO_BARRIER_ANY);
static_assert(static_cast<uint32_t>(Way::kCard) == RIO_BARRIER_CARD);
static_assert(static_cast<uint32_t>(Way::kSoftware) == RIO_BARRIER_SOFTWARE);
static_assert(static_cast<uint32_t>(Way::kMemory) == RIO_BARRIER_MEMORY);
static_assert(rio::barrier::kNoPeer == RIO_BARRIER_NO_RANK);

namespace {

constexpr uint32_t kCloseMs = 1000;

/// @return 0, -EINVAL, -E2BIG; logged.
[[nodiscard]] int read_group_options(const rio_barrier_options* given, GroupOptions* out) {
  rio_barrier_options options{};
  int rc = rio::api::read_options("rio_barrier_options", given, &options);
  if (rc != 0) {
    return rc;
  }
  if (options.way > RIO_BARRIER_MEMORY) {
    rio::base::log_error("rio_barrier_options: way is %u; use one of enum rio_barrier_way",
                         options.way);
    return -EINVAL;
  }
  out->key = options.key;
  out->way = static_cast<Way>(options.way);
  out->create_ms = options.create_ms != 0 ? options.create_ms : out->create_ms;
  out->deadline_ms = options.deadline_ms;
  std::string error;
  if (options.schedule != nullptr) {
    rc = rio::barrier::parse_scheme(options.schedule, &out->scheme, &error);
  }
  if (rc != 0) {
    rio::base::log_error("rio_barrier_options: %s", error.c_str());
  }
  return rc;
}

[[nodiscard]] rio::msg::MessagePort& port_of(const rio_barrier_group* group) {
  return *group->owner->owner->port;
}

}  // namespace

int rio_barrier_open(rio_msg_port* port, uint32_t number, rio_barrier** out) {
  return rio::api::open(port, number, out, [&](rio_barrier& barrier, uint16_t id) {
    return BarrierContext::create(*port->port, id, &barrier.context);
  });
}

int rio_barrier_close(rio_barrier* barrier) {
  if (barrier == nullptr) {
    return 0;
  }
  if (barrier->groups != 0) {
    rio::base::log_error("rio_barrier_close: %u groups are left; destroy them first",
                         barrier->groups);
    return -EBUSY;
  }
  static_cast<void>(rio::api::flush(*barrier->owner->port, kCloseMs,
                                    [&](uint32_t ms) { return barrier->context->flush(ms); }));
  return rio::api::close(barrier);
}

rio_msg_address rio_barrier_self(const rio_barrier* barrier) {
  return barrier->context->self();
}

int rio_barrier_progress(rio_barrier* barrier) {
  return guarded(*barrier->owner->port, [&] {
    barrier->context->progress();
    return barrier->owner->port->error();
  });
}

int rio_barrier_create(rio_barrier* barrier, const rio_msg_address* members, uint32_t count,
                       uint32_t rank, const rio_barrier_options* options, rio_barrier_group** out) {
  return guarded(*barrier->owner->port, [&] {
    GroupOptions read;
    if (const int rc = read_group_options(options, &read); rc != 0) {
      return rc;
    }
    if (members == nullptr || out == nullptr) {
      rio::base::log_error("rio_barrier_create: the members, or where the group goes, is NULL");
      return -EINVAL;
    }
    auto made = std::make_unique<rio_barrier_group>();
    const int rc = barrier->context->create_group({members, count}, rank, read, &made->group);
    if (rc == 0) {
      made->owner = barrier;
      ++barrier->groups;
      *out = made.release();
    }
    return rc;
  });
}

void rio_barrier_destroy(rio_barrier_group* group) {
  if (group != nullptr) {
    static_cast<void>(guarded(port_of(group), [&] {
      --group->owner->groups;
      delete group;
      return 0;
    }));
  }
}

int rio_barrier_wait_ready(rio_barrier_group* group, uint32_t timeout_ms) {
  return no_throw([&] { return group->group->wait_ready(timeout_ms); });
}

int rio_barrier_arrive(rio_barrier_group* group) {
  return guarded(port_of(group), [&] { return group->group->arrive(); });
}

int rio_barrier_test(rio_barrier_group* group) {
  return guarded(port_of(group), [&] {
    const int rc = group->group->test();
    if (rc != 0) {
      return rc;
    }
    group->owner->context->progress();
    return group->group->test();
  });
}

int rio_barrier_wait(rio_barrier_group* group, uint32_t timeout_ms) {
  return no_throw([&] { return group->group->wait(timeout_ms); });
}

int rio_barrier_run(rio_barrier_group* group, uint32_t timeout_ms) {
  const int rc = rio_barrier_arrive(group);
  return rc != 0 ? rc : rio_barrier_wait(group, timeout_ms);
}

void rio_barrier_get_failure(const rio_barrier_group* group, rio_barrier_failure* out) {
  const rio::msg::Guard guard(port_of(group));
  const rio::barrier::Failure failure = group->group->failure();
  *out = {failure.error, failure.rank};
}

uint32_t rio_barrier_way_of(const rio_barrier_group* group) {
  const rio::msg::Guard guard(port_of(group));
  return static_cast<uint32_t>(group->group->way());
}
