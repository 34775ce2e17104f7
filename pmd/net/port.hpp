/// @file
/// An Ethernet port on queue pairs of a card.
#pragma once

#include <ethdev_driver.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "pmd/card/eal_card.hpp"
#include "pmd/net/rx.hpp"
#include "pmd/net/rx_irq.hpp"
#include "pmd/net/tx.hpp"

namespace rio::pmd {

/// Most transmit queues of a port: a doorbell can name no more.
inline constexpr uint16_t kTxQueuesMax = kMoreIdsMask;
/// Ethernet header and two VLAN tags.
inline constexpr uint32_t kFrameBytesOverMtu = RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
inline constexpr uint32_t kMtuMax = kFrameBytesMax - kFrameBytesOverMtu;

/// The arguments of a device.
struct NetPortArgs {
  int qp = -1;  ///< of the card; -1: any
  std::vector<uint32_t> invited;
  uint8_t mbox = 0;
  uint64_t storm_frames_per_s = 250'000;
  bool handover = true;  ///< long frames are passed on in the port's own mbufs
};

class NetPort;

/// A queue's state, as ethdev knows it.
[[nodiscard]] inline uint8_t state_of(bool started) {
  return started ? RTE_ETH_QUEUE_STATE_STARTED : RTE_ETH_QUEUE_STATE_STOPPED;
}

/// The part of a port that all processes see: ethdev's private data.
struct NetShared {
  static constexpr uint32_t kCountsMax = 64 + 5 * RTE_ETHDEV_QUEUE_STAT_CNTRS;

  NetPort* port;  ///< the primary's object; null: closed
  Peers* peers;
  NetRx* rx;         ///< null before the first start
  bool others_poll;  ///< the card works even when the primary does not poll
  uint16_t ring_log2_min;
  uint16_t ring_log2_max;
  uint16_t tx_queues_max;
  Rss rss_conf;
  std::array<uint64_t, kCountsMax> zero;  ///< counts at their last reset, as stats.cc orders them
};

/// A port in the primary process. Control path, under control_lock(). Functions return 0 or -errno;
/// the cause is logged.
class NetPort final : public CardUser {
 public:
  /// Create a port. @param dev of ethdev, whose private data has room for a NetShared, which owns
  /// the port.
  [[nodiscard]] static int create(const std::string& name, std::shared_ptr<EalCard> card,
                                  const NetPortArgs& args, rte_eth_dev* dev);
  ~NetPort();

  /// Set up a receive queue. @param deferred the queue is not started with the port; also of
  /// set_up_tx().
  [[nodiscard]] int set_up_rx(uint16_t queue, uint16_t entries, rte_mempool* pool, bool scatter,
                              bool deferred);
  [[nodiscard]] int set_up_tx(uint16_t queue, uint16_t entries, bool fast_free, bool deferred);
  void release_rx(uint16_t queue) { rx_queues_[queue].reset(); }
  void release_tx(uint16_t queue);
  [[nodiscard]] int start();
  void stop();
  [[nodiscard]] int set_mtu(uint16_t mtu);
  /// Set the address. @return 0: it is the port's own, or that of another port of this process, for
  /// which this one then stands in; -ENOTSUP.
  [[nodiscard]] int set_address(const rte_ether_addr& address);
  /// Take the port off the fabric while it stays started, or put it back. Does nothing to a stopped
  /// port; starting it puts it back. @return -EBUSY: a thread stays in a burst; or as start().
  [[nodiscard]] int set_link(bool up);
  /// Reset the port, which is stopped: the card, unless other devices or processes have working
  /// queue pairs of it; then the port alone, whose queue pairs are closed already. @return as
  /// EalCard::reset().
  [[nodiscard]] int reset();
  /// Have a sleeping thread woken by the next frame, or now if there may be one. Started port only,
  /// for the thread that polls. @return 0, -ENOTSUP: the port was not configured with interrupts.
  [[nodiscard]] int wake_on_rx();
  /// Update the state of the link, and run callbacks for changes.
  int update_link();

  [[nodiscard]] int hold() override;
  void let_go() override;
  void before_reset() override;
  [[nodiscard]] int after_reset() override;
  [[nodiscard]] EalCard& card() { return *card_; }
  [[nodiscard]] uint32_t dest_id();
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] NetShared& shared() { return *shared_; }

 private:
  NetPort(std::string name, std::shared_ptr<EalCard> card, const NetPortArgs& args,
          rte_eth_dev* dev);
  [[nodiscard]] int open();
  [[nodiscard]] int open_all();
  [[nodiscard]] int open_pair(uint16_t queue);
  [[nodiscard]] int open_rx();
  void forget_rx();
  [[nodiscard]] int check_room(uint32_t room_bytes, bool scatter, uint16_t mtu) const;
  [[nodiscard]] int check_queues();
  [[nodiscard]] int make_ring(NetRxQueue& queue);
  void close();
  [[nodiscard]] std::vector<Turn*> turns();
  [[nodiscard]] bool take_away();
  void give_back();
  void call_peers(bool opened);
  static void introduce_all();
  [[nodiscard]] uint32_t frame_bytes_max() const { return dev_->data->mtu + kFrameBytesOverMtu; }

  // Watching: runs in EAL's interrupt thread.
  void watch();
  static void on_alarm(void* self);
  void look();
  void give_up(NetTx& queue, uint32_t looks);
  [[nodiscard]] bool is_dead();

  NetPortArgs args_;
  rte_eth_dev* const dev_;
  NetShared* const shared_;
  uint32_t qp_ = 0;
  bool started_ = false;
  bool held_ = false;        // threads are kept out of bursts
  bool closed_ = false;      // for a reset, or because the link was set down
  bool link_down_ = false;   // by set_link()
  bool recovering_ = false;  // callbacks know that the card is being reset
  bool failed_ = false;      // callbacks know that the card does not come back
  uint32_t looks_ = 0;
  uint16_t epoch_;
  RxIrq irq_;
  SharedPtr<Peers> peers_;
  SharedPtr<NetRx> rx_;
  std::array<SharedPtr<NetRxQueue>, kRxQueuesMax> rx_queues_;
  std::array<SharedPtr<NetTx>, kTxQueuesMax> tx_;
  std::array<std::unique_ptr<QueuePair>, kTxQueuesMax> pairs_;
};

}  // namespace rio::pmd
