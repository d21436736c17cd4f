def registry_yaml(certificate):
    return ""
