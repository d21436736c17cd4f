def certificate_page(certificate):
    return ""
