#include "apps/testpmd/test_run.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "apps/testpmd/lcores.hpp"

namespace rio::testpmd {
namespace {

/// Flow numbers that the modes use: by port, by lane, or by flow.
uint32_t flows_needed(const Options& options, size_t ports) {
  const uint32_t each =
      std::max(options.mode == "flowgen" ? options.flows : 1, regs::kDedicatedQueues);
  return each * static_cast<uint32_t>(ports);
}

}  // namespace

int TestRun::create(const Options& options, std::unique_ptr<pmd::cores::Placement> placement,
                    std::unique_ptr<TestRun>* out, std::string* error) {
  std::unique_ptr<TestRun> session(new TestRun(options, std::move(placement)));
  int rc = TestPort::open_all(&session->ports_, error);
  if (rc != 0) {
    return rc;
  }
  rc = TestPort::connect(session->ports_, options, error);
  if (rc != 0) {
    return rc;
  }
  uint32_t align = 1;
  for (const auto& port : session->ports_) {
    const pmd::Caps& caps = port->card().caps();
    align = std::max({align, caps.shared_addr_align, caps.tx_addr_align});
  }
  const auto ports = static_cast<uint32_t>(session->ports_.size());
  rc =
      MessagePool::create(session->ports_.front()->card().bus(),
                          ports * (kSharedBuffers + options.window), align, &session->pool_, error);
  if (rc != 0) {
    return rc;
  }
  for (const auto& port : session->ports_) {
    rc = port->fill_shared(*session->pool_, error);
    if (rc != 0) {
      return rc;
    }
  }
  *out = std::move(session);
  return 0;
}

TestRun::~TestRun() {
  if (run_) {
    run_->request_stop();
    (void)finish();
  }
  for (const auto& port : ports_) {
    port->close();
  }
  pool_.reset();  // before the cards, whose bus it is
}

int TestRun::check(const Mode& mode, uint32_t size_bytes, std::string* error) const {
  if (size_bytes > mode.max_bytes) {
    *error = "--size: " + std::to_string(size_bytes) + " bytes are more than the " +
             std::to_string(mode.max_bytes) +
             " of a message; modes dedicated and rdma take up to " +
             std::to_string(kTransferBytesMax);
    return -EINVAL;
  }
  if (options.offset_bytes != 0 && !mode.takes_offset) {
    *error = "--offset: mode " + options.mode +
             " has no buffers of its own; use txonly, flowgen, pingpong, dedicated or rdma";
    return -EINVAL;
  }
  const bool several = size_bytes > regs::kSegmentBytesMax;
  if (options.mailboxes > regs::kMultiMailboxes && several) {
    *error = "--mailboxes " + std::to_string(options.mailboxes) + ": messages of " +
             std::to_string(size_bytes) + " bytes have several segments, which mailboxes 0 to 3 " +
             "take alone; give at most 4, or a --size of at most 256";
    return -EINVAL;
  }
  return check_options(options, error);
}

int TestRun::start(uint32_t size_bytes, std::string* error) {
  if (run_) {
    *error = "a run is in progress; stop it first";
    return -EBUSY;
  }
  const Mode* const mode = find_mode(options.mode, error);
  if (mode == nullptr) {
    error->insert(0, "--mode: ");
    return -EINVAL;
  }
  int rc = check(*mode, size_bytes, error);
  if (rc != 0) {
    return rc;
  }
  rc = TestPort::connect(ports_, options, error);
  if (rc != 0) {
    return rc;
  }
  const RunSetup setup{options, size_bytes, ports_, *pool_, verifier_};
  rc = mode->check == nullptr ? 0 : mode->check(setup, error);
  if (rc != 0) {
    return rc;
  }
  verifier_.reset(options.seed + results_.size(), flows_needed(options, ports_.size()), size_bytes,
                  options.verify);
  for (const auto& port : ports_) {
    port->probe.reset();
    const int faults = port->set_faults(options.fault_seed + port->index(), options.fault_rate);
    if (faults != 0 && options.fault_rate > 0) {
      *error = "--faults: " + port->name() + " is not an emulated card of this process";
      return faults;
    }
    rc = port->fill_shared(*pool_, error);
    if (rc != 0) {
      return rc;
    }
  }
  Streams streams;
  rc = mode->make_streams(setup, &streams, error);
  if (rc != 0) {
    return rc;
  }
  std::vector<unsigned> lcores;
  std::string warnings;
  rc = choose_lcores(options, *mode, placement_.get(), ports_, streams.size(), &lcores, &warnings,
                     error);
  if (rc != 0) {
    return rc;
  }
  if (results_.empty()) {
    std::fputs(warnings.c_str(), stderr);
  }
  run_ = std::make_unique<Run>(*mode, setup, std::move(streams), std::move(lcores));
  if (rc = run_->start(error); rc != 0) {
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
  int worst = kExitOk;
  for (const RunResult& result : results_) {
    worst = std::max(worst, result.exit_code);
  }
  return worst;
}

}  // namespace rio::testpmd
