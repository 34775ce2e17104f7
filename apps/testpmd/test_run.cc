#include "apps/testpmd/test_run.hpp"

#include <rte_lcore.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "apps/testpmd/text.hpp"
#include "pmd/cores/cpu_list.hpp"

namespace rio::testpmd {
namespace {

unsigned cpu_of(unsigned lcore) {
  return static_cast<unsigned>(rte_lcore_to_cpu_id(static_cast<int>(lcore)));
}

/// Nearest to the card first, whole cores before second hyperthreads.
void sort_by_distance(std::vector<unsigned>* lcores, const pmd::cores::Placement& placement,
                      pmd::Bus& bus) {
  const bool pci = bus.name().size() == 12 && bus.name()[4] == ':';  // 0000:03:00.0
  std::vector<unsigned> order;
  if (placement.choose({.pci_address = pci ? bus.name() : "", .numa_node = bus.numa_node()},
                       static_cast<unsigned>(placement.cpus().size()), {}, &order) != 0) {
    return;
  }
  const auto rank = [&order](unsigned lcore) {
    return std::find(order.begin(), order.end(), cpu_of(lcore)) - order.begin();
  };
  std::stable_sort(lcores->begin(), lcores->end(),
                   [&rank](unsigned a, unsigned b) { return rank(a) < rank(b); });
}

/// Lcores for a run: those of --forward-lcores, else of those that EAL has the ones nearest the
/// cards. @param placement of this machine, null if it is not known. @param streams how many there
/// are to poll. @return 0, or -EINVAL where a list does not match.
int choose_lcores(const RunSetup& setup, const Mode& mode, const pmd::cores::Placement* placement,
                  size_t streams, std::vector<unsigned>* lcores, std::string* error) {
  const Options& options = setup.options;
  std::vector<unsigned> all;
  unsigned next = 0;
  RTE_LCORE_FOREACH(next) {
    all.push_back(next);
  }
  std::vector<unsigned> chosen = options.forward_lcores;
  if (chosen.empty()) {
    chosen = all;
    if (placement != nullptr) {
      sort_by_distance(&chosen, *placement, setup.ports.front()->card().bus());
    }
    const size_t wanted = options.nb_cores != 0                       ? options.nb_cores
                          : mode.name == std::string_view("pingpong") ? 2
                                                                      : 1;
    if (options.nb_cores > all.size()) {
      return fail(error, "--nb-cores %u: EAL has only %s (%s); give it more by -l",
                  options.nb_cores, counted(all.size(), "lcore", "lcores").c_str(),
                  pmd::cores::format_cpu_list(all).c_str());
    }
    chosen.resize(std::min(wanted, chosen.size()));
  }
  for (const unsigned lcore : chosen) {
    if (std::find(all.begin(), all.end(), lcore) == all.end()) {
      return fail(error, "--forward-lcores: EAL has no lcore %u, only %s; give it more by -l",
                  lcore, pmd::cores::format_cpu_list(all).c_str());
    }
  }
  const bool free_choice = options.nb_cores == 0 && options.forward_lcores.empty();
  if (chosen.size() > streams && !free_choice) {
    return fail(error, "%zu lcores for %s: mode %s has %s to poll; give at most that many",
                chosen.size(), counted(setup.ports.size(), "port", "ports").c_str(), mode.name,
                counted(streams, "stream", "streams").c_str());
  }
  chosen.resize(std::min(chosen.size(), streams));
  *lcores = std::move(chosen);
  return 0;
}

/// Print a warning if lcores that poll share a core or a CPU. @param placement may be null.
void warn_of_sharing(const std::vector<unsigned>& lcores, const pmd::cores::Placement* placement) {
  std::vector<unsigned> cpus;
  for (const unsigned lcore : lcores) {
    cpus.push_back(cpu_of(lcore));
  }
  // Lcores may float over several CPUs (--lcores): then their sets are compared.
  std::string warning = placement == nullptr ? "" : placement->sharing_warning(cpus);
  for (size_t i = 0; warning.empty() && i < lcores.size(); ++i) {
    for (size_t j = i + 1; j < lcores.size(); ++j) {
      rte_cpuset_t both;
      const rte_cpuset_t first = rte_lcore_cpuset(lcores[i]);
      const rte_cpuset_t second = rte_lcore_cpuset(lcores[j]);
      CPU_AND(&both, &first, &second);
      if (CPU_COUNT(&both) != 0) {
        warning = formatted(
            "lcores %u and %u poll and share a CPU: each will wait for the other; "
            "give EAL an lcore on another core (-l 0,1)",
            lcores[i], lcores[j]);
      }
    }
  }
  if (!warning.empty()) {
    std::fprintf(stderr, "rio-testpmd: warning: %s\n", warning.c_str());
  }
}

}  // namespace

/// The peers of the ports, if the mode has some.
int TestRun::connect(const Mode& mode, std::string* error) {
  return mode.sends_to_peers ? TestPort::connect(ports_, options, error) : 0;
}

int TestRun::open(std::string* error) {
  const Mode* const mode = find_mode(options.mode, error);
  if (mode == nullptr || TestPort::open_all(mode == &kBarrierMode, &ports_, error) != 0 ||
      connect(*mode, error) != 0) {
    return -EINVAL;
  }
  uint32_t align = 1;
  for (const auto& port : ports_) {
    const pmd::Caps& caps = port->card().caps();
    align = std::max({align, caps.shared_addr_align, caps.tx_addr_align});
  }
  const auto buffers = static_cast<uint32_t>(ports_.size()) * (kSharedBuffers + options.window);
  if (pool_.allocate(ports_.front()->card().bus(), buffers, align, error) != 0) {
    return -EINVAL;
  }
  for (const auto& port : ports_) {
    if (port->fill_shared(pool_, error) != 0) {
      return -EINVAL;
    }
  }
  return 0;
}

int TestRun::check(const Mode& mode, uint32_t size_bytes, std::string* error) const {
  if (size_bytes > mode.max_bytes) {
    return fail(error,
                "--size: %u bytes are more than the %u of a message; modes dedicated and rdma take "
                "up to %u",
                size_bytes, mode.max_bytes, kTransferBytesMax);
  }
  if (options.offset_bytes != 0 && !mode.takes_offset) {
    return fail(error,
                "--offset: mode %s has no buffers of its own; use txonly, flowgen, pingpong, "
                "dedicated or rdma",
                mode.name);
  }
  if (options.mailboxes > regs::kMultiMailboxes && size_bytes > regs::kSegmentBytesMax) {
    return fail(error,
                "--mailboxes %u: messages of %u bytes have several segments, which mailboxes 0 to "
                "3 take alone; give at most 4, or a --size of at most 256",
                options.mailboxes, size_bytes);
  }
  return check_options(options, error);
}

int TestRun::start(uint32_t size_bytes, std::string* error) {
  if (run_) {
    return fail(error, "a run is in progress; stop it first");
  }
  const Mode* const mode = find_mode(options.mode, error);
  if (mode == nullptr) {
    return -EINVAL;
  }
  const RunSetup setup{options, size_bytes, ports_, pool_, verifier_};
  if (check(*mode, size_bytes, error) != 0 || connect(*mode, error) != 0 ||
      (mode->check != nullptr && mode->check(setup, error) != 0)) {
    return -EINVAL;
  }
  // Flow numbers are by port, by path, or by flow.
  const uint32_t flows =
      std::max(options.mode == "flowgen" ? options.flows : 1, regs::kDedicatedQueues);
  verifier_.reset(options.seed + results_.size(), flows * static_cast<uint32_t>(ports_.size()),
                  size_bytes, options.verify);
  for (const auto& port : ports_) {
    port->probe.reset();
    if (port->set_faults(options) != 0 && options.fault_rate > 0) {
      return fail(error, "--faults: %s is not an emulated card of this process",
                  port->name.c_str());
    }
    if (port->fill_shared(pool_, error) != 0) {
      return -EINVAL;
    }
  }
  Streams streams;
  std::vector<unsigned> lcores;
  if (mode->make_streams(setup, &streams, error) != 0 ||
      choose_lcores(setup, *mode, placement_.get(), streams.size(), &lcores, error) != 0) {
    return -EINVAL;
  }
  if (results_.empty()) {
    warn_of_sharing(lcores, placement_.get());
  }
  run_ = std::make_unique<Run>(*mode, setup, std::move(streams), std::move(lcores));
  const int rc = run_->start(error);
  if (rc != 0) {
    run_.reset();
  }
  return rc;
}

const RunResult& TestRun::finish() {
  while (!run_->wait_for(std::chrono::milliseconds(100))) {
  }
  results_.push_back(run_->result());
  run_.reset();
  return results_.back();
}

int TestRun::exit_code() const {
  const auto worst = std::ranges::max_element(results_, {}, &RunResult::exit_code);
  return worst == results_.end() ? kExitOk : worst->exit_code;
}

}  // namespace rio::testpmd
