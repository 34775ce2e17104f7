/// @file
/// Ethernet ports for tests, through ethdev's functions alone, and a raw device that can send
/// invalid frames. One thread, unless stated otherwise.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rio::test {

inline constexpr uint32_t kTurns = 1'000'000;  ///< the longest wait
inline constexpr uint32_t kQuietTurns = 300;   ///< enough for anything under way to arrive
using Bytes = std::vector<uint8_t>;

/// A device that is plugged in while it lives.
class Device {
 public:
  Device(const std::string& name, const std::string& args);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// A mempool for one object; at the end none of its mbufs may be missing.
class Pool {
 public:
  explicit Pool(uint32_t room_bytes, uint32_t count = 2047, uint16_t priv_bytes = 0);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] bool full() const { return rte_mempool_full(pool_) == 1; }

 private:
  rte_mempool* pool_;
};

struct PortConf {
  uint16_t rx_queues = 1;
  uint16_t tx_queues = 1;
  uint16_t mtu = 4082;
  uint16_t entries = 256;
  bool scatter = false;
  bool fast_free = false;
  uint64_t rss = 0;  ///< RTE_ETH_RSS_…
  bool rx_irq = false;
};

/// A frame's bytes. @param seed distinguishes frames. From byte 14 on length and seed determine all
/// bytes.
[[nodiscard]] Bytes frame_bytes(const rte_ether_addr& to, const rte_ether_addr& from,
                                uint32_t bytes, uint32_t seed = 0);
[[nodiscard]] rte_ether_addr address(uint32_t dest_id);
extern const rte_ether_addr kEverybody;

class Port {
 public:
  /// Configures and starts the port.
  Port(const std::string& name, const Pool& pool, const PortConf& conf = {});
  ~Port() { stop(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  void stop();
  void start();

  /// Makes a frame of segments of any lengths. @param cuts where segments begin. @param shift of
  /// each segment's first byte.
  [[nodiscard]] rte_mbuf* make(const Bytes& bytes, const std::vector<uint32_t>& cuts = {},
                               uint32_t shift = 0) const;
  /// Sends a frame, and frees it if it is refused. @return whether it was accepted.
  bool send(rte_mbuf* frame, uint16_t queue = 0) const;
  /// Offers a frame until it is accepted. @param meanwhile lets others work.
  bool send_now(rte_mbuf* frame, const std::function<void()>& meanwhile, uint16_t queue = 0) const;
  /// The next frame. @return null: none came in so many turns.
  [[nodiscard]] rte_mbuf* receive(const std::function<void()>& meanwhile, uint32_t turns = kTurns,
                                  uint16_t queue = 0) const;
  /// Does everything but receiving frames.
  void work() const;
  [[nodiscard]] uint64_t xstat(const std::string& name) const;
  [[nodiscard]] const rte_ether_addr& mac() const { return mac_; }
  [[nodiscard]] uint16_t id() const { return id_; }

 private:
  const Pool& pool_;
  uint16_t id_ = 0;
  rte_ether_addr mac_{};
  bool started_ = false;
};

/// Gets the bytes of a frame and frees it. Checks what all frames have in common.
[[nodiscard]] Bytes take(rte_mbuf* frame);

/// Two ports that are wired to each other, and their work while one waits.
class Pair {
 public:
  /// @param args of both devices, appended to "wire=".
  Pair(const std::string& wire, const Pool& pool, const PortConf& conf = {},
       const std::string& args = "");
  /// Waits until both know each other. @return false: they do not.
  bool meet();
  void work() const {
    a.work();
    b.work();
  }
  bool until(const std::function<bool()>& good, uint32_t turns = kTurns) const;

 private:
  Device device_a_;
  Device device_b_;

 public:
  Port a;
  Port b;
};

/// A raw device whose queue pairs send; the first one receives.
class RawPeer {
 public:
  struct Message {
    uint32_t source;
    uint8_t mbox;
    Bytes bytes;
  };
  struct Bell {
    uint32_t source;
    uint16_t info;
    bool operator==(const Bell&) const = default;
  };
  /// @param to destID of the port. @param other lets the port work. @param queue_pairs number of
  /// its queue pairs; 0: all.
  RawPeer(const std::string& name, uint32_t to, std::function<void()> other,
          uint16_t queue_pairs = 0);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  /// Sends a message. @return its status: RTE_RAW_RIO_OK, or another one once it has ended; -1: it
  /// has not.
  int send(const Bytes& bytes, uint8_t mbox, uint16_t qp = 0);
  int ring(uint16_t info, uint16_t qp = 0);
  /// All messages that have arrived so far.
  std::vector<Message> messages();
  std::vector<Bell> bells();
  /// Waits for a doorbell. @return false: it has not come.
  bool hears(uint16_t info);
  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  [[nodiscard]] uint16_t dev() const { return dev_; }

 private:
  int finish(uint16_t qp);
  void post(uint64_t page);

  uint16_t dev_ = 0;
  uint16_t queue_pairs_;
  uint32_t to_;
  uint32_t dest_id_ = 0;
  std::function<void()> other_;
  uint8_t* memory_ = nullptr;
  std::vector<Bell> heard_;
};

/// Builds a bundle's bytes by hand. Items are added in order.
class BundleBytes {
 public:
  BundleBytes(uint8_t items, uint16_t epoch, uint16_t number);
  BundleBytes& item(const Bytes& bytes, uint16_t total = 0, uint16_t offset = 0);
  Bytes bytes;
};

}  // namespace rio::test
