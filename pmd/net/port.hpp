/// @file
/// An Ethernet port: queue pairs of a card, and the frames on them.
#pragma once

#include <ethdev_driver.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "pmd/card/eal_card.hpp"
#include "pmd/net/rx.hpp"
#include "pmd/net/tx.hpp"

namespace rio::pmd {

/// Queue pairs that send for a port: what a doorbell can tell.
inline constexpr uint16_t kTxQueuesMax = kMoreIdsMask;
/// Header and two VLAN tags.
inline constexpr uint32_t kFrameBytesOverMtu = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
inline constexpr uint32_t kMtuMax = kFrameBytesMax - kFrameBytesOverMtu;

/// The arguments of a device.
struct NetPortArgs {
  int qp = -1;  ///< of the card; -1: any
  std::vector<uint32_t> invited;
  uint8_t mbox = 0;
  uint64_t storm_frames_per_s = 250'000;
  bool handover = true;  ///< long frames in mbufs of the port's own
};

class NetPort;

/// The part of a port that all processes see: ethdev's private data.
struct NetShared {
  static constexpr uint32_t kCountsMax = 64;
  static constexpr uint32_t kQueueCounts = 5;

  NetPort* port;  ///< the primary's own; null: closed
  Peers* peers;
  NetRx* rx;         ///< null before the first start
  bool others_poll;  ///< the card works without the primary's polling
  bool rss;          ///< rss is in force
  uint16_t ring_log2_min;
  uint16_t ring_log2_max;
  uint16_t tx_queues_max;
  int numa_node;
  Rss rss_conf;
  // Counts at the last reset of them, by the table in stats.cc; and of queues.
  uint64_t zero[kCountsMax];
  uint64_t queue_zero[RTE_ETHDEV_QUEUE_STAT_CNTRS][kQueueCounts];
};

/// Of the primary process. Control path, under control_lock(). Functions return 0 or -errno; the
/// cause is logged.
class NetPort final : public CardUser {
 public:
  /// @param dev of ethdev, whose private data is a NetShared.
  [[nodiscard]] static int create(const std::string& name, std::shared_ptr<EalCard> card,
                                  const NetPortArgs& args, std::unique_ptr<NetPort>* out);
  ~NetPort();
  /// ethdev has a place for it.
  [[nodiscard]] int attach(rte_eth_dev* dev);

  /// @param deferred the queue is not started with the port; of set_up_tx(), too.
  [[nodiscard]] int set_up_rx(uint16_t queue, uint16_t entries, rte_mempool* pool, bool scatter,
                              bool deferred);
  [[nodiscard]] int set_up_tx(uint16_t queue, uint16_t entries, bool fast_free, bool deferred);
  void release_rx(uint16_t queue);
  void release_tx(uint16_t queue);
  [[nodiscard]] int start();
  void stop();
  [[nodiscard]] int set_mtu(uint16_t mtu);
  /// @return 0: the address is the port's, or that of another port of this process, for which it
  /// then stands in; -ENOTSUP.
  [[nodiscard]] int set_address(const rte_ether_addr& address);
  /// Take the port off the fabric while it stays started, or put it back. Does nothing to a stopped
  /// port; starting it puts it back. @return -EBUSY: a thread stays in a burst; or as start().
  [[nodiscard]] int set_link(bool up);
  /// The link as it is now; tells who wants to hear of changes.
  int update_link();

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] int hold() override;
  void let_go() override;
  void before_reset() override;
  [[nodiscard]] int after_reset() override;
  [[nodiscard]] EalCard& card() { return *card_; }
  [[nodiscard]] uint32_t dest_id();
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] NetShared& shared() { return *shared_; }
  [[nodiscard]] rte_eth_dev& dev() { return *dev_; }

 private:
  NetPort(std::string name, std::shared_ptr<EalCard> card, const NetPortArgs& args);
  [[nodiscard]] int open();
  [[nodiscard]] int open_pair(uint16_t queue);
  [[nodiscard]] int open_rx();
  void forget_rx();
  [[nodiscard]] int check_room(uint32_t room_bytes, bool scatter, uint16_t mtu) const;
  [[nodiscard]] int check_queues();
  [[nodiscard]] int make_ring(NetRxQueue& queue);
  void close();
  [[nodiscard]] bool take_away();
  void give_back();
  void invite();
  [[nodiscard]] bool is_mate(uint32_t dest_id);
  void know_mates();
  static void introduce_all();
  [[nodiscard]] uint32_t frame_bytes_max() const { return dev_->data->mtu + kFrameBytesOverMtu; }
  [[nodiscard]] NetTx* tx(uint16_t queue) const { return tx_[queue].get(); }

  // Watching: in EAL's interrupt thread.
  void watch();
  void stop_watching();
  static void on_alarm(void* self);
  void look();
  void give_up(NetTx& queue);
  void call_absent();
  [[nodiscard]] bool is_dead();

  std::string name_;
  std::shared_ptr<EalCard> card_;
  NetPortArgs args_;
  rte_eth_dev* dev_ = nullptr;
  NetShared* shared_ = nullptr;
  uint32_t qp_ = 0;
  bool started_ = false;
  bool held_ = false;        // no thread gets into a burst
  bool closed_ = false;      // for a reset, or since the link was set down
  bool link_down_ = false;   // by set_link()
  bool recovering_ = false;  // callbacks were told so
  bool failed_ = false;      // and that the card does not come back
  uint32_t looks_ = 0;
  uint16_t epoch_;
  SharedPtr<Peers> peers_;
  SharedPtr<NetRx> rx_;
  uint16_t rx_priv_bytes_ = 0;
  std::array<SharedPtr<NetRxQueue>, kRxQueuesMax> rx_queues_;
  std::array<SharedPtr<NetTx>, kTxQueuesMax> tx_;
  std::array<std::unique_ptr<QueuePair>, kTxQueuesMax> pairs_;
  // Rings of what the queues were set up with.
  std::array<uint8_t, kRxQueuesMax> rx_log2_{};
};

}  // namespace rio::pmd
