/// @file
/// A user of a port: what is sent to its id comes here and to nobody else.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/msg/port.hpp"

namespace rio::msg {

/// The port's thread. The port outlives it.
class Context {
 public:
  /// @param id below kContexts. @return 0, -EINVAL (id), -EBUSY (the port has such a context),
  /// -ENOMEM.
  [[nodiscard]] static int create(Port& port, uint16_t id, std::unique_ptr<Context>* out);
  /// What has arrived and was not taken is lost; peers are told that there is no such context.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// What has arrived: look, pop, and give the buffer back to the port some time. Messages of one
  /// sender are in their order.
  [[nodiscard]] Inbox& inbox() { return inbox_; }
  [[nodiscard]] Port& port() { return port_; }
  [[nodiscard]] uint16_t id() const { return id_; }

 private:
  Context(Port& port, uint16_t id, std::vector<Delivery> memory)
      : memory_(std::move(memory)),
        inbox_(memory_.data(), static_cast<uint32_t>(memory_.size())),
        port_(port),
        id_(id) {}

  std::vector<Delivery> memory_;
  Inbox inbox_;
  Port& port_;
  uint16_t id_;
};

}  // namespace rio::msg
