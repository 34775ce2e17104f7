// rio-tool rail: how busy a card is, and cards behind its link, by their own words.
#include <cerrno>
#include <cstring>

#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "base/clock.hpp"
#include "base/formatted.hpp"

namespace rio::tool {
namespace {

constexpr uint32_t kLinkWaitMs = 2000;
constexpr uint32_t kCardWaitMs = 5000;  // beyond the response time-out
constexpr uint32_t kRetries = 16;       // of RETRY answers
constexpr uint32_t kPeriodUs = 1000;    // between two writes of the own card

struct Options {
  CardOption card;
  std::vector<uint32_t> peers;
  uint32_t host_id = 0;
  uint32_t id_bits = 16;
  uint32_t timeout_ms = 100;
  bool watch = false;
  Pace pace;
};

/// The status of one card, or the reason why there is none.
struct Answer {
  std::string where;
  Json dest_id;  // null: the own card
  int rc = 0;
  pmd::RailState state;
};

/// Why there is no status, with a remedy.
std::string reason(int rc) {
  switch (rc) {
    case -ENOTSUP:
      return "refused: the card has no rails block, or no such destID";
    case -ETIMEDOUT:
      return "no answer: no such destID, or no route; see rio-tool fabric --look";
    case -EAGAIN:
      return "a write was seen in part each time: look again";
    case -EPROTO:
      return "the answer is no status: the card has no rails block";
    default:
      return std::strerror(-rc);
  }
}

/// An open card with what the command needs of it.
struct Asker {
  std::unique_ptr<Endpoint> endpoint;
  pmd::DmaMemory memory;  // of the answer of a peer
  uint32_t wait_ms = 0;
  uint64_t asked = 0;  // cookie of the last request

  /// Ask another card. @return as pmd::read_rail_answer(), or -ETIMEDOUT: the own card is silent.
  [[nodiscard]] int ask(uint32_t dest_id, pmd::RailState* out);
};

int Asker::ask(uint32_t dest_id, pmd::RailState* out) {
  const pmd::DmaRequest request = pmd::rail_request(dest_id, memory.iova, ++asked);
  if (endpoint->dma().post(&request, 1) != 1) {
    return -EBUSY;  // the own card has answered none of many requests
  }
  const uint64_t until_ns = base::now_ns() + uint64_t{wait_ms} * 1'000'000;
  pmd::EntryDone done{};
  while (endpoint->dma().reap(&done, 1) == 0 || done.cookie != asked) {
    if (base::now_ns() > until_ns) {
      return -ETIMEDOUT;
    }
  }
  regs::RailStatus bytes;
  std::memcpy(&bytes, memory.va, sizeof bytes);
  return pmd::read_rail_answer(done, bytes, out);
}

/// Open the card. @return 0 or -errno, said on stderr.
int open(const GlobalOptions& context, const Options& options, Asker* out) {
  EndpointConfig config;
  config.dest_id = options.host_id;
  config.card.dest_id_size = options.id_bits == 8 ? 0 : 1;
  config.card.response_timeout_us = options.timeout_ms * 1000;
  config.card.receive_timeout_us = 2 * config.card.response_timeout_us;
  config.card.retry_limit = kRetries;
  config.queues.rings = pmd::ring_bit(regs::Ring::kDma);
  int rc = open_endpoint(context, options.card, config, &out->endpoint);
  if (rc != 0) {
    return rc;
  }
  out->wait_ms = options.timeout_ms + kCardWaitMs;
  const std::string& name = out->endpoint->name();
  if (out->endpoint->card().blocks().has_rail()) {
    rc = out->endpoint->open_rail_watch(kPeriodUs);
  } else if (options.peers.empty()) {
    return complain(name + " has no rails block: it does not say how busy it is",
                    "update the gateware, or name cards behind its link by their destIDs",
                    -ENOTSUP);
  }
  if (rc == 0 && !options.peers.empty()) {
    rc = out->endpoint->wait_link(kLinkWaitMs);
    rc = rc != 0 ? rc : out->endpoint->alloc(sizeof(regs::RailStatus), 64, &out->memory);
  }
  return rc;
}

std::vector<Answer> look(Asker& asker, const Options& options) {
  std::vector<Answer> all;
  let_work(asker.endpoint->card().bus());  // it writes what is due
  if (const pmd::RailWatch* const watch = asker.endpoint->rail_watch(); watch != nullptr) {
    Answer& own = all.emplace_back();
    own.where = asker.endpoint->name();
    own.rc = watch->read(&own.state);
  }
  for (const uint32_t peer : options.peers) {
    Answer& answer = all.emplace_back();
    answer.where = "destID " + std::to_string(peer);
    answer.dest_id = peer;
    answer.rc = asker.ask(peer, &answer.state);
  }
  return all;
}

Json to_json(const Answer& answer) {
  Json data = {{"where", answer.where},
               {"dest_id", answer.dest_id},
               {"known", answer.rc == 0},
               {"why", answer.rc == 0 ? "" : reason(answer.rc)}};
  if (answer.rc == 0) {
    const pmd::RailState& state = answer.state;
    data["sequence"] = state.sequence;
    data["time_ticks"] = state.time_ticks;
    data["reading"] = state.reading;
    data["receiving"] = state.receiving;
    data["tx_bytes"] = state.tx_bytes;
    data["rx_bytes"] = state.rx_bytes;
    data["link_up"] = state.link.up;
    data["lanes"] = state.link.lanes;
    data["lane_mbaud"] = state.link.lane_mbaud;
  }
  return data;
}

std::vector<std::string> to_row(const Answer& answer) {
  if (answer.rc != 0) {
    return {answer.where, "", "", "", "", reason(answer.rc)};
  }
  const pmd::RailState& state = answer.state;
  return {answer.where,
          state.reading ? "busy" : "idle",
          std::to_string(state.tx_bytes),
          state.receiving ? "busy" : "idle",
          std::to_string(state.rx_bytes),
          state.link.up
              ? base::formatted("%ux %.3g Gbaud", state.link.lanes, state.link.lane_mbaud / 1000.0)
              : "down"};
}

/// @return whether each card has told its status.
bool print_sample(const GlobalOptions& context, const Options& options, Asker& asker) {
  Json data = {{"time", utc_text()},
               {"emulated", asker.endpoint->caps().is_model},
               {"statuses", Json::array()}};
  TextTable table({"card", "sending", "bytes to send", "receiving", "bytes to come", "link"});
  bool all_known = true;
  for (const Answer& answer : look(asker, options)) {
    data["statuses"].push_back(to_json(answer));
    table.add(to_row(answer));
    all_known = all_known && answer.rc == 0;
  }
  print_result(context, data,
               options.watch ? time_of_day() + "\n" + table.text() + "\n" : table.text(),
               options.watch ? -1 : 2);
  return all_known;
}

int rail(const GlobalOptions& context, Options& options) {
  if (context.dry_run) {
    return print_result(context, {{"statuses", Json::array()}},
                        "not asked: the card would be reset (dry run)\n");
  }
  Asker asker;
  if (open(context, options, &asker) != 0) {
    return kExitFailed;
  }
  bool all_known = true;
  do {
    all_known = print_sample(context, options, asker) && all_known;
  } while (options.watch && options.pace.next());
  return all_known ? kExitOk : kExitFound;
}

}  // namespace

void add_rail(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] = add_command(
      app, context, "rail", "How busy a card is, and cards behind its link; the card is reset",
      "Shows what the card says of itself: whether it sends and receives, how many bytes of\n"
      "messages it has still to send, how many are still to come, and its link. A card behind the\n"
      "link is asked by its destID; it answers by itself, also while its host is stopped.\n"
      "Exit code 3: a card did not tell.\n\n"
      "Examples\n  rio-tool rail\n  rio-tool rail 2 3 --host-id 1\n"
      "  rio-tool --json rail 2 --watch --interval 0.1 > peer.jsonl",
      rail);
  command.add_option("DESTID", options.peers, "Cards behind the link")
      ->check(CLI::Range(0u, 0xFFFFu));
  options.card.add_to(command);
  command.add_option("--host-id", options.host_id, "destID of this card")
      ->check(CLI::Range(0u, 0xFFFEu))
      ->capture_default_str();
  command.add_option("--id-bits", options.id_bits, "Width of destIDs: 8 or 16")
      ->check(CLI::IsMember({8u, 16u}))
      ->capture_default_str();
  command.add_option("--timeout-ms", options.timeout_ms, "Milliseconds to wait for an answer")
      ->check(CLI::Range(1u, 10000u))
      ->capture_default_str();
  command.add_flag("--watch", options.watch, "Again and again; JSON: one line each");
  options.pace.add_to(command);
}

}  // namespace rio::tool
