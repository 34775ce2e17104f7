#include "apps/testpmd/test_port.hpp"

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_rawdev.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fpga/name/parse.hpp"
#include "pmd/raw/raw_rio.hpp"
#include "pmd/raw/rte_raw_rio.h"

namespace rio::testpmd {
namespace {

constexpr const char* kDriver = "raw_rio";

/// The wire of an emulated card; "" for a PCI card.
std::string wire_of(const rte_device* device) {
  const rte_devargs* args = rte_dev_devargs(device);
  const bool is_emulated = std::string_view(rte_dev_name(device)).starts_with("raw_rio");
  return is_emulated ? name::wire_of(args == nullptr || args->args == nullptr ? "" : args->args)
                     : "";
}

std::string hex(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%x", number);
  return text;
}

int start(uint16_t dev_id, const rte_raw_rio_info& info, const std::string& name,
          std::string* error) {
  for (uint16_t qp = 0; qp < info.queue_pairs; ++qp) {
    const int rc = rte_rawdev_queue_setup(dev_id, qp, nullptr, 0);
    if (rc != 0) {
      *error = name + ": queue pair " + std::to_string(qp) + " cannot be set up (" +
               std::strerror(-rc) + "); is another process using it?";
      return rc;
    }
  }
  const int rc = rte_rawdev_start(dev_id);
  if (rc != 0) {
    *error = name + ": cannot be started (" + std::strerror(-rc) + "); see the log above";
  }
  return rc;
}

}  // namespace

int TestPort::open_all(std::vector<std::unique_ptr<TestPort>>* out, std::string* error) {
  std::vector<std::unique_ptr<TestPort>> ports;
  uint32_t left = rte_rawdev_count();
  for (uint16_t dev_id = 0; left > 0 && dev_id < RTE_RAWDEV_MAX_DEVS; ++dev_id) {
    rte_rawdev_info device{};
    rte_raw_rio_info info{};
    if (rte_rawdev_info_get(dev_id, &device, 0) != 0) {
      continue;
    }
    --left;
    if (device.driver_name == nullptr ||
        std::strncmp(device.driver_name, kDriver, std::strlen(kDriver)) != 0) {
      continue;
    }
    device.dev_private = &info;
    int rc = rte_rawdev_info_get(dev_id, &device, sizeof(info));
    std::unique_ptr<TestPort> port(new TestPort());
    port->index_ = static_cast<uint32_t>(ports.size());
    port->dev_id_ = dev_id;
    port->name_ = rte_dev_name(device.device);
    port->wire_ = wire_of(device.device);
    if (rc != 0) {
      *error = port->name_ + ": no information (" + std::strerror(-rc) + "); see the log above";
      return rc;
    }
    rc = pmd::raw_hold(dev_id);  // pollers would not notice that it is unplugged
    if (rc != 0) {
      *error = port->name_ + ": is being unplugged (" + std::strerror(-rc) +
               "); start without it, or when it is back";
      return rc;
    }
    port->held_ = true;
    rc = start(dev_id, info, port->name_, error);
    if (rc != 0) {
      return rc;
    }
    port->started_ = true;
    port->card_ = pmd::raw_card(dev_id);
    for (uint32_t qp = 0; qp < info.queue_pairs; ++qp) {
      pmd::QueuePair* pair = pmd::raw_queue_pair(dev_id, qp);
      if (port->card_ == nullptr || pair == nullptr) {
        *error = port->name_ + ": queue pair " + std::to_string(qp) + " is not there after start";
        return -ENODEV;
      }
      port->pairs_.push_back(pair);
      port->dest_ids_.push_back(pair->dest_id());
    }
    ports.push_back(std::move(port));
  }
  if (ports.empty()) {
    *error =
        "no ports: no card was found; for two emulated ones give, before the --, "
        "--vdev raw_rio0,wire=pair0 --vdev raw_rio1,wire=pair0";
    return -ENODEV;
  }
  *out = std::move(ports);
  return 0;
}

int TestPort::connect(std::vector<std::unique_ptr<TestPort>>& ports, const Options& options,
                      std::string* error) {
  if (!options.peers.empty() && options.peers.size() != ports.size()) {
    const auto counted = [](size_t n, const char* what) {
      return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
    };
    *error = "--peers names " + counted(options.peers.size(), "destID") + " for " +
             counted(ports.size(), "port") + "; give one for each";
    return -EINVAL;
  }
  for (const auto& port : ports) {
    port->peer_ = nullptr;
    for (const auto& other : ports) {
      // The cable of a real card is unknown: it reaches the port that --peers names, by a loop
      // itself.
      const bool cabled = port->wire_.empty() && other->wire_.empty() && !options.peers.empty();
      const bool wired =
          cabled || (port->wire_ == "loop"
                         ? other == port
                         : other != port && other->wire_ == port->wire_ && !port->wire_.empty());
      const bool named = !options.peers.empty() &&
                         std::find(other->dest_ids_.begin(), other->dest_ids_.end(),
                                   options.peers[port->index_]) != other->dest_ids_.end();
      if (options.peers.empty() ? wired : wired && named) {
        port->peer_ = other.get();
      }
    }
    // Real cards have no wire name: two of them are taken to be cabled to each other.
    if (port->wire_.empty() && options.peers.empty() && ports.size() == 2) {
      port->peer_ = ports[port->index_ ^ 1u].get();
    }
    // An emulated card reaches those of its wire, and these are all in this process.
    if (port->peer_ == nullptr && (options.peers.empty() || !port->wire_.empty())) {
      *error = port->why_alone(ports, options);
      return -EINVAL;
    }
    port->peer_dest_id_ =
        options.peers.empty() ? port->peer_->dest_ids_[0] : options.peers[port->index_];
  }
  return 0;
}

/// Explain why the port has no peer to send to, with the remedy.
std::string TestPort::why_alone(const std::vector<std::unique_ptr<TestPort>>& ports,
                                const Options& options) const {
  const std::string own = "port " + std::to_string(index_) + " (" + name_ + ")";
  if (wire_.empty()) {
    return own +
           " is a card whose cable is unknown; say by --peers which destID each port sends to";
  }
  std::string reached;
  for (const auto& other : ports) {
    if (other->wire_ == wire_ && ((other.get() == this) == (wire_ == "loop"))) {
      for (const uint32_t id : other->dest_ids_) {
        reached += (reached.empty() ? "" : ", ") + hex(id);
      }
    }
  }
  if (reached.empty()) {
    return own + " has no partner: no other port has wire " + wire_ +
           "; add one (--vdev raw_rio1,wire=" + wire_ + ")";
  }
  return "--peers: " + own + " cannot reach destID " + hex(options.peers[index_]) + ": on wire " +
         wire_ + " there is " + reached;
}

int TestPort::fill_shared(MessagePool& pool, std::string* error) {
  while (shared_posted < kSharedBuffers) {
    const uint64_t buffer = pool.take();
    const pmd::RxBuffer rx{.iova = buffer, .cookie = buffer};
    if (buffer == 0 || pair().shared().post(&rx, 1) != 1) {
      if (buffer != 0) {
        pool.give(buffer);
      }
      if (shared_posted >= kSharedBuffers / 4) {
        return 0;  // a smaller ring: enough to run
      }
      *error = name_ + ": its shared receive queue takes only " + std::to_string(shared_posted) +
               " buffers; give it a larger ring (--vdev …,rx_ring=512)";
      return -ENOBUFS;
    }
    ++shared_posted;
  }
  return 0;
}

int TestPort::set_faults(uint64_t seed, double rate) {
  return pmd::raw_set_faults(dev_id_, seed, rate);
}

void TestPort::close() {
  if (started_) {
    rte_rawdev_stop(dev_id_);
    started_ = false;
  }
  if (held_) {
    pmd::raw_let_go(dev_id_);
    held_ = false;
  }
}

TestPort::~TestPort() {
  close();
}

}  // namespace rio::testpmd
