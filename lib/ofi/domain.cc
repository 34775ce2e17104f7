#include "lib/ofi/domain.hpp"

#include <rdma/providers/fi_log.h>

#include <algorithm>

#include "fpga/name/rails.hpp"
#include "lib/ofi/address_vector.hpp"
#include "lib/ofi/attendant.hpp"
#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/fi_endpoint.hpp"
#include "lib/ofi/resolve.hpp"

namespace rio::ofi {
namespace {

/// Emulated cards have interrupts on a fabric, where other processes serve them.
[[nodiscard]] bool can_sleep(const std::string& card) {
  std::vector<std::string> names;
  std::vector<name::CardName> cards;
  std::string ignored;  // opening the card tells it
  return name::parse_cards(card, &names, &cards, &ignored) == 0 &&
         std::ranges::all_of(cards, name::is_in_fabric);
}

}  // namespace

// Questions begin at a random number: a late answer to an earlier process with this destID matches
// none of ours.
Domain::Domain(Used& fabric, const fi_info& info, const Params& params,
               std::unique_ptr<msg::MessagePort> port, void* user_context)
    : fid_domain{{FI_CLASS_DOMAIN, user_context, &closing_ops<Domain>}, nullptr, &memory_ops},
      use_(fabric),
      process_(std::move(port), fabric_mark(fabric_of(info.domain_attr->name)), params.barriers),
      regions_(process_.port(), (info.domain_attr->mr_mode & (kMrBasic | FI_MR_VIRT_ADDR)) != 0,
               (info.domain_attr->mr_mode & (kMrBasic | FI_MR_PROV_KEY)) != 0),
      border_(params.border),
      rma_border_(params.rma_border),
      has_sockets_(is_socket_format(info.addr_format)),
      next_question_(process_.port().instance()) {}

Domain::~Domain() {
  attendant_.reset();
  process_.close();
}

int Domain::open(fid_fabric* fabric, fi_info* info, fid_domain** out, void* user_context) {
  return no_throw([&] {
    Params params;
    if (read_params(&params) != 0) {
      return -FI_EINVAL;
    }
    const bool alone = info->domain_attr->data_progress == FI_PROGRESS_AUTO;
    msg::PortConfig config;
    config.card = info->domain_attr->name;
    config.queue_pair = params.queue_pair;
    config.dest_id = params.dest_id;
    config.threads = info->domain_attr->threading == FI_THREAD_DOMAIN && !alone
                         ? msg::Threads::kOne
                         : msg::Threads::kPerContext;
    config.sleeps = can_sleep(config.card);
    std::unique_ptr<msg::MessagePort> port;
    if (const int rc = msg::MessagePort::open(config, &port); rc != 0) {
      return rc;
    }
    FI_INFO(&provider(), FI_LOG_DOMAIN, "card %s, queue pair %u, destID %u\n", config.card.c_str(),
            config.queue_pair, port->dest_id());
    return open_on(std::move(port), fabric, *info, params, out, user_context);
  });
}

int Domain::open_on(std::unique_ptr<msg::MessagePort> port, fid_fabric* fabric, const fi_info& info,
                    const Params& params, fid_domain** out, void* user_context) {
  const bool alone = info.domain_attr->data_progress == FI_PROGRESS_AUTO;
  std::unique_ptr<Domain> domain(
      new Domain(of<FiFabric>(fabric), info, params, std::move(port), user_context));
  if (const int rc = alone ? Attendant::start(*domain, &domain->attendant_) : 0; rc != 0) {
    return rc;
  }
  *out = domain.release();
  return 0;
}

void Domain::reap_transfers() {
  if (++reaps_ % kReaps == 0) {
    return;
  }
  for (uint32_t i = 0; i < endpoints_end_; ++i) {
    if (endpoints_[i] != nullptr) {
      endpoints_[i]->remote().reap_transfers();
    }
  }
}

void Domain::work() {
  process_.port().progress();  // also with no endpoint left: peers wait for answers
  process_.attend_barriers();
  for (uint32_t i = 0; i < endpoints_end_; ++i) {
    if (endpoints_[i] != nullptr) {
      endpoints_[i]->progress();
    }
  }
}

int Domain::add(FiEndpoint& endpoint, int wanted) {
  const auto from = endpoints_.begin() + (wanted >= 0 ? wanted : static_cast<int>(next_number_));
  auto* place = wanted >= 0 ? from : std::find(from, endpoints_.end(), nullptr);
  place = place != endpoints_.end() ? place : std::find(endpoints_.begin(), from, nullptr);
  if (*place != nullptr) {
    if (wanted >= 0) {
      base::log_error("rio: endpoint %d of this domain is open already; close it first", wanted);
      return -EADDRINUSE;
    }
    base::log_error(
        "rio: a domain has %u endpoints, and all are open; close some, or open another domain",
        kEndpoints);
    return -ENOSPC;
  }
  *place = &endpoint;
  const auto number = static_cast<uint32_t>(place - endpoints_.begin());
  endpoints_end_ = std::max(endpoints_end_, number + 1);
  next_number_ = (number + 1) % kEndpoints;
  return static_cast<int>(number);
}

void Domain::remove(const AddressVector& av) {
  std::erase(vectors_, &av);
  for (CompletionQueue* const queue : queues_) {
    queue->forget(av);
  }
}

bool Domain::take_place(uint32_t owner, uint32_t dest_id) {
  if (owner == 0) {
    return true;  // a name that a user typed has no owner
  }
  const auto [last, is_first] = owners_.try_emplace(dest_id, owner);
  const msg::Link* const link = process_.port().known_link(dest_id);
  const bool spoke_to_another = link != nullptr && link->instance != 0 && link->instance != owner;
  if (is_first ? !spoke_to_another : last->second == owner) {
    return true;
  }
  for (const AddressVector* const av : vectors_) {
    if (av->has_gone(owner, dest_id)) {
      return false;
    }
  }
  last->second = owner;
  for (AddressVector* const av : vectors_) {
    av->lose(dest_id);
  }
  // The name shows that the peer with this destID is not the process that had it before.
  process_.port().meet_instance(dest_id, owner);
  for (uint32_t i = 0; i < endpoints_end_; ++i) {
    if (endpoints_[i] != nullptr) {
      endpoints_[i]->forget_former(dest_id);
    }
  }
  return true;
}

}  // namespace rio::ofi
