# OS_CLIENT_CONFIG_FILE=…/clouds.yaml terraform apply; see docs/how-to/use-terraform.md
terraform {
  required_providers {
    openstack = {
      source = "terraform-provider-openstack/openstack"
    }
  }
}

provider "openstack" {
  cloud = "siderite"
}

resource "openstack_compute_instance_v2" "web" {
  name        = "web"
  image_name  = "tiny"
  flavor_name = "m1.tiny"
}
