/// @file
/// An Ethernet port: a queue pair of a card, and the frames on it.
#pragma once

#include <ethdev_driver.h>

#include <memory>
#include <string>
#include <vector>

#include "pmd/card/eal_card.hpp"
#include "pmd/net/rx.hpp"
#include "pmd/net/tx.hpp"

namespace rio::pmd {

/// Control path, under control_lock(). Functions return 0 or -errno; the cause is logged.
class NetPort final : public CardUser {
 public:
  /// @param qp of the card; -1: any. @param invited destIDs that are told when the port starts.
  [[nodiscard]] static int create(const std::string& name, std::shared_ptr<EalCard> card, int qp,
                                  std::vector<uint32_t> invited, std::unique_ptr<NetPort>* out);
  ~NetPort();

  [[nodiscard]] int set_up_rx(const NetRxConfig& config, NetRx** out);
  [[nodiscard]] int set_up_tx(NetTx** out);
  void release_rx() { rx_.reset(); }
  void release_tx() { tx_.reset(); }
  [[nodiscard]] int start();
  void stop();

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool in_use() const override { return pair_ != nullptr; }
  void before_reset() override {}
  [[nodiscard]] int after_reset() override { return 0; }
  [[nodiscard]] EalCard& card() { return *card_; }
  [[nodiscard]] uint32_t dest_id();
  [[nodiscard]] rte_eth_link link();
  [[nodiscard]] const NetRx* rx() const { return rx_.get(); }
  [[nodiscard]] const NetTx* tx() const { return tx_.get(); }

  /// Counts at the last reset of them, by the table in stats.cc.
  std::vector<uint64_t> zero;

 private:
  NetPort(std::string name, std::shared_ptr<EalCard> card, std::vector<uint32_t> invited);

  std::string name_;
  std::shared_ptr<EalCard> card_;
  std::vector<uint32_t> invited_;
  uint32_t qp_ = 0;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<NetRx> rx_;
  std::unique_ptr<NetTx> tx_;
  std::unique_ptr<QueuePair> pair_;
};

}  // namespace rio::pmd
