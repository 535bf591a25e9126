// What Terraform's provider for OpenStack does, done with the library that it is made of: a key pair
// and a server by the names of its image and flavor, read back with all that the provider reads,
// changed, resized, stopped, deleted; and a node through its life. The cloud comes from clouds.yaml.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run main.go IMAGE FLAVOR LARGER
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/allocations"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/drivers"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/nodes"
	bmports "github.com/gophercloud/gophercloud/openstack/baremetal/v1/ports"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/attachinterfaces"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/availabilityzones"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/extendedstatus"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/instanceactions"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/keypairs"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/limits"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/quotasets"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/servergroups"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/startstop"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/tags"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/volumeattach"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/openstack/imageservice/v2/images"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/ports"
	"github.com/gophercloud/utils/openstack/clientconfig"
	flavorutils "github.com/gophercloud/utils/openstack/compute/v2/flavors"
	imageutils "github.com/gophercloud/utils/openstack/imageservice/v2/images"
	networkutils "github.com/gophercloud/utils/openstack/networking/v2/networks"
)

const (
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me"
	patience  = 120 * time.Second
)

// The server with what the provider reads beside it.
type server struct {
	servers.Server
	availabilityzones.ServerAvailabilityZoneExt
	extendedstatus.ServerExtendedStatusExt
}

func main() {
	if len(os.Args) != 4 {
		fail("usage: main IMAGE FLAVOR LARGER")
	}
	identity()
	virtual(os.Args[1], os.Args[2], os.Args[3])
	metal()
	fmt.Println("all done")
}

func client(service string) *gophercloud.ServiceClient {
	made, err := clientconfig.NewServiceClient(service, &clientconfig.ClientOpts{})
	check("client for "+service, err)
	return made
}

func identity() {
	at := client("identity")
	token, err := tokens.Get(at, at.Token()).ExtractProject()
	check("own token", err)
	page, err := projects.List(at, projects.ListOpts{}).AllPages()
	check("projects", err)
	mine, err := projects.ExtractProjects(page)
	check("projects", err)
	for _, one := range mine {
		if one.ID == token.ID {
			fmt.Println("logged in to project", one.Name)
			return
		}
	}
	fail("the token's project is not among the projects")
}

func virtual(image, flavor, larger string) {
	compute, network := client("compute"), client("network")
	imageID, err := imageutils.IDFromName(client("image"), image)
	check("image by its name", err)
	_, err = images.Get(client("image"), imageID).Extract()
	check("image", err)
	flavorID, err := flavorutils.IDFromName(compute, flavor)
	check("flavor by its name", err)
	largerID, err := flavorutils.IDFromName(compute, larger)
	check("larger flavor by its name", err)

	page, err := networks.List(network, networks.ListOpts{}).AllPages()
	check("networks", err)
	known, err := networks.ExtractNetworks(page)
	check("networks", err)
	networkID, err := networkutils.IDFromName(network, known[0].Name)
	check("network by its name", err)

	key, err := keypairs.Create(compute, keypairs.CreateOpts{Name: "gopher", PublicKey: publicKey}).Extract()
	check("key pair", err)
	compute.Microversion = "2.15"
	group, err := servergroups.Create(compute, servergroups.CreateOpts{
		Name: "gopher", Policies: []string{"soft-anti-affinity"},
	}).Extract()
	check("server group", err)
	compute.Microversion = ""

	made, err := servers.Create(compute, keypairs.CreateOptsExt{
		KeyName: key.Name,
		CreateOptsBuilder: servers.CreateOpts{
			Name: "gopher", ImageRef: imageID, FlavorRef: flavorID,
			Networks: []servers.Network{{UUID: networkID}},
			Metadata: map[string]string{"made": "by gopher"},
			UserData: []byte("#cloud-config\n"),
		},
	}).Extract()
	check("server", err)
	reaches(compute, made.ID, "ACTIVE")
	read(compute, network, made.ID)
	change(compute, made.ID, flavorID, largerID)

	check("delete", servers.Delete(compute, made.ID).ExtractErr())
	gone("server", func() error { return servers.Get(compute, made.ID).Err })
	check("delete key pair", keypairs.Delete(compute, key.Name).ExtractErr())
	check("delete group", servergroups.Delete(compute, group.ID).ExtractErr())
}

func read(compute, network *gophercloud.ServiceClient, id string) {
	var found server
	check("server and its extensions", servers.Get(compute, id).ExtractInto(&found))
	if found.AvailabilityZone == "" || found.VmState != "active" || len(found.Addresses) == 0 {
		fail(fmt.Sprintf("server lacks something: %+v", found))
	}
	page, err := servers.ListAddresses(compute, id).AllPages()
	check("addresses", err)
	_, err = servers.ExtractAddresses(page)
	check("addresses", err)
	page, err = attachinterfaces.List(compute, id).AllPages()
	check("interfaces", err)
	plugs, err := attachinterfaces.ExtractInterfaces(page)
	check("interfaces", err)
	page, err = ports.List(network, ports.ListOpts{DeviceID: id}).AllPages()
	check("ports", err)
	seen, err := ports.ExtractPorts(page)
	check("ports", err)
	if len(plugs) != 1 || len(seen) != 1 || seen[0].MACAddress != plugs[0].MACAddr {
		fail(fmt.Sprintf("ports differ: %+v %+v", plugs, seen))
	}
	page, err = volumeattach.List(compute, id).AllPages()
	check("volumes", err)
	_, err = volumeattach.ExtractVolumeAttachments(page)
	check("volumes", err)
	_, err = limits.Get(compute, limits.GetOpts{}).Extract()
	check("limits", err)
	_, err = quotasets.GetDetail(compute, found.TenantID).Extract()
	check("quotas", err)
	page, err = flavors.ListDetail(compute, flavors.ListOpts{}).AllPages()
	check("flavors", err)
	_, err = flavors.ExtractFlavors(page)
	check("flavors", err)
	page, err = instanceactions.List(compute, id, instanceactions.ListOpts{}).AllPages()
	check("actions", err)
	done, err := instanceactions.ExtractInstanceActions(page)
	check("actions", err)
	_, err = instanceactions.Get(compute, id, done[0].RequestID).Extract()
	check("action", err)
}

func change(compute *gophercloud.ServiceClient, id, flavorID, largerID string) {
	_, err := servers.Update(compute, id, servers.UpdateOpts{Name: "gopher two"}).Extract()
	check("rename", err)
	_, err = servers.ResetMetadata(compute, id, servers.MetadataOpts{"made": "new"}).Extract()
	check("metadata", err)
	compute.Microversion = "2.52"
	_, err = tags.ReplaceAll(compute, id, tags.ReplaceAllOpts{Tags: []string{"gopher"}}).Extract()
	check("tags", err)
	compute.Microversion = ""

	check("resize", servers.Resize(compute, id, servers.ResizeOpts{FlavorRef: largerID}).ExtractErr())
	reaches(compute, id, "VERIFY_RESIZE")
	check("confirm", servers.ConfirmResize(compute, id).ExtractErr())
	reaches(compute, id, "ACTIVE")
	now, err := servers.Get(compute, id).Extract()
	check("server", err)
	if now.Name != "gopher two" || now.Metadata["made"] != "new" || now.Flavor["id"] != largerID {
		fail(fmt.Sprintf("not changed: %+v", now))
	}
	check("stop", startstop.Stop(compute, id).ExtractErr())
	reaches(compute, id, "SHUTOFF")
	check("start", startstop.Start(compute, id).ExtractErr())
	reaches(compute, id, "ACTIVE")
}

func metal() {
	cloud, err := clientconfig.GetCloudFromYAML(&clientconfig.ClientOpts{})
	check("clouds.yaml", err)
	provider, err := clientconfig.AuthenticatedClient(&clientconfig.ClientOpts{})
	check("log in", err)
	iron, err := openstack.NewBareMetalV1(provider, gophercloud.EndpointOpts{Region: cloud.RegionName})
	check("client for baremetal", err)
	iron.Microversion = "1.72"
	page := drivers.ListDrivers(iron, drivers.ListDriversOpts{})
	all, err := page.AllPages()
	check("drivers", err)
	_, err = drivers.ExtractDrivers(all)
	check("drivers", err)

	node, err := nodes.Create(iron, nodes.CreateOpts{
		Name: "gopher", Driver: "fake-hardware", ResourceClass: "gopher",
		Properties: map[string]interface{}{"cpus": "4"},
	}).Extract()
	check("node", err)
	port, err := bmports.Create(iron, bmports.CreateOpts{NodeUUID: node.UUID, Address: "52:54:00:99:00:01"}).Extract()
	check("port", err)
	_, err = nodes.Update(iron, node.UUID, nodes.UpdateOpts{
		nodes.UpdateOperation{Op: nodes.ReplaceOp, Path: "/extra", Value: map[string]interface{}{"by": "gopher"}},
	}).Extract()
	check("patch", err)
	_, err = nodes.Validate(iron, node.UUID).Extract()
	check("validate", err)

	provision(iron, node.UUID, nodes.ProvisionStateOpts{Target: nodes.TargetManage}, "manageable")
	check("boot device", nodes.SetBootDevice(iron, node.UUID, nodes.BootDeviceOpts{BootDevice: "pxe"}).ExtractErr())
	_, err = nodes.GetBootDevice(iron, node.UUID).Extract()
	check("boot device", err)
	provision(iron, node.UUID, nodes.ProvisionStateOpts{Target: nodes.TargetProvide}, "available")

	claim, err := allocations.Create(iron, allocations.CreateOpts{Name: "gopher", ResourceClass: "gopher"}).Extract()
	check("allocation", err)
	until("allocation", func() (bool, string) {
		now, err := allocations.Get(iron, claim.UUID).Extract()
		check("allocation", err)
		return now.State == "active" && now.NodeUUID == node.UUID, now.State + " " + now.LastError
	})
	_, err = nodes.Update(iron, node.UUID, nodes.UpdateOpts{nodes.UpdateOperation{
		Op: nodes.AddOp, Path: "/instance_info", Value: map[string]interface{}{"image_source": "http://127.0.0.1/x"},
	}}).Extract()
	check("instance_info", err)
	drive := nodes.ConfigDrive{MetaData: map[string]interface{}{"hostname": "gopher"}}
	provision(iron, node.UUID, nodes.ProvisionStateOpts{Target: nodes.TargetActive, ConfigDrive: drive}, "active")
	check("reboot", nodes.ChangePowerState(iron, node.UUID, nodes.PowerStateOpts{Target: nodes.Rebooting}).ExtractErr())
	until("power", func() (bool, string) {
		now, err := nodes.Get(iron, node.UUID).Extract()
		check("node", err)
		return now.PowerState == "power on" && now.TargetPowerState == "", now.PowerState
	})
	provision(iron, node.UUID, nodes.ProvisionStateOpts{Target: nodes.TargetDeleted}, "available")
	check("delete port", bmports.Delete(iron, port.UUID).ExtractErr())
	check("delete node", nodes.Delete(iron, node.UUID).ExtractErr())
	gone("node", func() error { return nodes.Get(iron, node.UUID).Err })
}

func provision(iron *gophercloud.ServiceClient, id string, opts nodes.ProvisionStateOpts, end string) {
	check(string(opts.Target), nodes.ChangeProvisionState(iron, id, opts).ExtractErr())
	until(string(opts.Target), func() (bool, string) {
		now, err := nodes.Get(iron, id).Extract()
		check("node", err)
		return now.ProvisionState == end, now.ProvisionState + " " + now.LastError
	})
	fmt.Println("node is", end)
}

func reaches(compute *gophercloud.ServiceClient, id, status string) {
	check("wait for "+status, servers.WaitForStatus(compute, id, status, int(patience.Seconds())))
	fmt.Println("server is", status)
}

func until(what string, right func() (bool, string)) {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		done, said := right()
		if done {
			return
		}
		if time.Now().After(end) {
			fail(what + " did not come: " + said)
		}
	}
}

func gone(what string, get func() error) {
	until(what+" to be gone", func() (bool, string) {
		err := get()
		_, missing := err.(gophercloud.ErrDefault404)
		return missing, fmt.Sprint(err)
	})
	fmt.Println(what, "is gone")
}

func check(what string, err error) {
	if err != nil {
		fail(what + ": " + err.Error())
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
