// /net_rio/list, /net_rio/info,PORT, /net_rio/peers,PORT, /net_rio/reset,PORT
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_telemetry.h>

#include <cerrno>
#include <mutex>

#include "base/number.hpp"
#include "pmd/net/ops.hpp"

namespace rio::pmd {
namespace {

/// Find a port of this driver in the primary process. @return null: no such port.
NetPort* find_port(uint16_t id) {
  const rte_eth_dev* const dev = id < RTE_MAX_ETHPORTS ? &rte_eth_devices[id] : nullptr;
  return dev != nullptr && dev->state == RTE_ETH_DEV_ATTACHED && dev->dev_ops == net_ops()
             ? shared_of(dev).port
             : nullptr;
}

/// Runs `work(NetPort&)` under the control lock. @return 0; -ENODEV: the parameters name no port.
template <class Work>
int with_port(const char* params, Work&& work) {
  const std::lock_guard guard(control_lock());
  uint16_t id = 0;
  NetPort* const port =
      params != nullptr && base::read_number(params, &id) ? find_port(id) : nullptr;
  if (port == nullptr) {
    return -ENODEV;
  }
  work(*port);
  return 0;
}

int list(const char* /*command*/, const char* /*params*/, rte_tel_data* data) {
  const std::lock_guard guard(control_lock());
  rte_tel_data_start_array(data, RTE_TEL_INT_VAL);
  for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; ++id) {
    if (find_port(id) != nullptr) {
      rte_tel_data_add_array_int(data, id);
    }
  }
  return 0;
}

int info(const char* /*command*/, const char* params, rte_tel_data* data) {
  return with_port(params, [data](NetPort& port) {
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "name", port.name().c_str());
    rte_tel_data_add_dict_string(data, "card", port.card().name().c_str());
    rte_tel_data_add_dict_string(data, "bus", port.card().bus().name().c_str());
    rte_tel_data_add_dict_int(data, "dest_id", static_cast<int>(port.dest_id()));
    rte_tel_data_add_dict_int(data, "started", port.started() ? 1 : 0);
    rte_tel_data_add_dict_int(data, "others_poll", port.shared().others_poll ? 1 : 0);
  });
}

int peers(const char* /*command*/, const char* params, rte_tel_data* data) {
  return with_port(params, [data](NetPort& port) {
    rte_tel_data_start_array(data, RTE_TEL_INT_VAL);
    port.shared().peers->joined.for_each([data](uint32_t dest_id) {
      return rte_tel_data_add_array_int(data, static_cast<int>(dest_id)) == 0;
    });
  });
}

int reset(const char* /*command*/, const char* params, rte_tel_data* data) {
  return with_port(params, [data](NetPort& port) {
    const int rc = port.card().reset();
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "reset", rc == 0 ? "done" : rte_strerror(-rc));
  });
}

}  // namespace

RTE_INIT(net_rio_telemetry_init) {
  rte_telemetry_register_cmd("/net_rio/list", list,
                             "Numbers of the ports on RapidIO cards. Takes no parameters");
  rte_telemetry_register_cmd("/net_rio/info", info, "Card and state. Parameters: int port_id");
  rte_telemetry_register_cmd("/net_rio/peers", peers,
                             "destIDs that have joined. Parameters: int port_id");
  rte_telemetry_register_cmd("/net_rio/reset", reset,
                             "Reset the card of a port. Parameters: int port_id");
}

}  // namespace rio::pmd
