#include "pmd/card/open_card.hpp"

#include <bus_pci_driver.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_thread.h>
#include <rte_version.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/log.hpp"
#include "base/number.hpp"
#include "base/thread.hpp"
#include "pmd/bus/eal/eal_memory.hpp"
#include "pmd/bus/eal/eal_pci_bus.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/bus/vfio/bus_master.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kLinkTimeoutMs = 100;

struct Job {
  const std::function<int()>& work;
  int result = 0;
};

template <class Result>
Result run_job(void* job) {
  static_cast<Job*>(job)->result = static_cast<Job*>(job)->work();
  return {};
}

/// Runs `work` in a new thread on the CPUs that EAL keeps for control threads, so that threads
/// started by it do not inherit the single CPU of an lcore. Waits for it. @return work's result, or
/// -EAGAIN (no thread), -ENOMEM; logged.
int run_in_control_thread(const std::function<int()>& work) {
  Job job{work};
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
  rte_thread_t thread;
  const int rc = rte_thread_create_control(&thread, "rio-setup", run_job<uint32_t>, &job);
#else
  pthread_t thread;
  const int rc = rte_ctrl_thread_create(&thread, "rio-setup", nullptr, run_job<void*>, &job);
#endif
  if (rc != 0) {  // positive or negative: EAL's versions differ
    base::log_error("EAL: %s", base::why_no_thread(-std::abs(rc)).c_str());
    return -std::abs(rc);
  }
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
  rte_thread_join(thread, nullptr);
#else
  pthread_join(thread, nullptr);
#endif
  return job.result;
}

/// A card of this process.
int make_card(const CardArgs& args, FoundCard* found) {
  found->shared.number_it();
  std::unique_ptr<EalMemory> memory;
  if (const int rc = EalMemory::create(found->shared.zone_tag(own_token()), &memory); rc != 0) {
    return rc;
  }
  std::unique_ptr<EmuBus> bus;
  // A thread of the card must not inherit the lcore's CPU from the caller.
  if (const int rc =
          run_in_control_thread([&] { return EmuBus::create(args.emu, std::move(memory), &bus); });
      rc != 0) {
    return rc;
  }
  found->bar = bus->bar_memory();
  found->bus = std::move(bus);
  found->wire = args.wire;
  found->works_alone = args.emu.model.stepping == Stepping::kThread;
  return 0;
}

/// The card of the primary process.
int join_card(const std::string& name, FoundCard* found) {
  if (const int rc = found->shared.attach(name); rc != 0) {
    return rc;
  }
  const SharedCardLayout& layout = found->shared.layout();
  if (layout.stepping_thread == 0) {
    base::log_warning(
        "%s: the card works only while the primary process polls it: give the primary "
        "stepping=thread",
        name.c_str());
  }
  std::unique_ptr<EalMemory> memory;
  if (const int rc = EalMemory::create(found->shared.zone_tag(own_token()), &memory); rc != 0) {
    return rc;
  }
  const DmaMemory bar{.va = reinterpret_cast<void*>(layout.bar_va),
                      .iova = layout.bar_iova,
                      .len_bytes = layout.bar_len_bytes};
  found->bus = EmuBus::attach(bar, std::move(memory), name);
  found->wire = layout.wire;
  return 0;
}

}  // namespace

int open_emulated_card(const std::string& name, const CardArgs& args,
                       std::shared_ptr<EalCard>* out) {
  FoundCard found;
  const bool primary = rte_eal_process_type() == RTE_PROC_PRIMARY;
  int rc = primary ? make_card(args, &found) : join_card(name, &found);
  rc = rc != 0 ? rc : EalCard::create(name, args, std::move(found), out);
  // Two cards of a wire have to see each other: what a card gets while its link is down is lost.
  const std::shared_ptr<EalCard> peer = rc == 0 ? (*out)->other_end() : nullptr;
  if (peer != nullptr) {
    (void)(*out)->wait_link(kLinkTimeoutMs);
    (void)peer->wait_link(kLinkTimeoutMs);
  }
  return rc;
}

int open_pci_card(rte_pci_device* pci, const CardArgs& args, std::shared_ptr<EalCard>* out) {
  FoundCard found;
  const bool ivshmem = pci->id.vendor_id == regs::kPciIvshmemVendor;
  const unsigned bar_index = ivshmem ? 2 : 0;
  if (rte_eal_process_type() == RTE_PROC_PRIMARY) {
    found.shared.number_it();
  } else if (const int rc = found.shared.attach(pci->name); rc != 0) {
    return rc;
  }
  std::unique_ptr<EalPciBus> bus;
  if (const int rc = EalPciBus::create(pci, bar_index, found.shared.zone_tag(own_token()), &bus);
      rc != 0) {
    return rc;
  }
  const uint32_t magic = vfio::await_magic(bus->bar(), [] { rte_delay_us_sleep(1000); });
  if (magic != regs::kMagic) {
    base::log_error("%s: BAR%u holds 0x%08x where a card holds 0x%08x: %s", pci->name, bar_index,
                    magic, regs::kMagic,
                    magic == regs::kAllOnes ? "the card does not answer, reset or replug it"
                                            : "other gateware, or a wrong byte order");
    return -ENODEV;
  }
  if (rte_eal_process_type() == RTE_PROC_PRIMARY) {
    (void)bus->stop_dma();  // EAL has let the card become bus master; logged
  }
  found.bus = std::move(bus);
  return EalCard::create(pci->name, args, std::move(found), out);
}

name::OwnKey qp_key(int* qp) {
  return {"qp", "0 to " + std::to_string(regs::kMaxQps - 1), [qp](std::string_view text) {
            return base::read_number(text, 0, regs::kMaxQps - 1, qp);
          }};
}

int open_any_card(const std::string& name, const char* args, OwnKeys own,
                  std::shared_ptr<EalCard>* out, int* qp) {
  std::string card;
  *qp = -1;
  own.insert(own.begin(), {{"card", "the name of a card that this process has",
                            [&card](std::string_view text) {
                              card = text;
                              return !text.empty();
                            }},
                           qp_key(qp)});
  CardArgs parsed;
  parsed.base_dest_id = default_dest_id(name.c_str());
  if (const int rc = parse_devargs(name, args, name::Place::kDevice, &parsed, own); rc != 0) {
    return rc;
  }
  if (card.empty()) {
    return open_emulated_card(name, parsed, out);
  }
  for (const std::string& key : parsed.given) {
    if (std::ranges::find(own, key, &name::OwnKey::key) == own.end()) {
      base::log_error("%s: '%s' is for a card of its own: give it to %s instead", name.c_str(),
                      key.c_str(), card.c_str());
      return -EINVAL;
    }
  }
  *out = EalCard::find(card);
  if (*out == nullptr) {
    const std::string names = EalCard::names();
    base::log_error(
        "%s: no card '%s' in this process: there %s%s; give its device before this one, a PCI "
        "card by -a",
        name.c_str(), card.c_str(), names.empty() ? "is none" : "are ", names.c_str());
    return -ENODEV;
  }
  return (*out)->require_card(name);
}

uint32_t default_dest_id(const char* name) {
  const size_t first = std::string_view(name).find_last_not_of("0123456789") + 1;
  const unsigned long number = std::strtoul(name + first, nullptr, 10);
  return static_cast<uint32_t>(number % 254 + 1) << 8;
}

}  // namespace rio::pmd
